"""A real worker on threads: tasks hold permits, and what is shed comes back later."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import task_retry
from celery.worker import state
from gatekit import PATIENCE, assert_at_rest, output_of, released, shed, until
from tidegate import Classifier, ConfigError, Gate, Priority, Shed
from tidegate._held import check_out
from tidegate.celery import GatedTask, countdown


@pytest.fixture
def gate() -> Gate:
    return Gate("tasks", limit=1)


Make = Callable[..., Any]


def result_of(result: Any, **options: Any) -> Any:
    return result.get(timeout=PATIENCE, interval=0.01, **options)


def leak(fault: str) -> pytest.MarkDecorator:
    return pytest.mark.leak("celery", fault)


class Step:
    """A task's body, which waits until the test lets it on."""

    def __init__(self) -> None:
        self.running = 0
        self.go = threading.Event()

    def __call__(self) -> str:
        self.running += 1
        try:
            assert self.go.wait(PATIENCE)
            return "done"
        finally:
            self.running -= 1


def test_a_task_holds_a_permit_and_what_is_shed_runs_later(task: Make, gate: Gate) -> None:
    step = Step()

    def body() -> str:
        return step()

    work = task(body, gate=gate)
    retried: list[Any] = []

    def note(request: Any, **_more: Any) -> None:
        retried.append(request.id)

    task_retry.connect(note)
    try:
        first = work.delay()
        until(lambda: step.running == 1)
        assert gate.in_flight == 1
        second = work.delay()
        until(lambda: retried == [second.id])
        assert step.running == 1
        step.go.set()
        assert [result_of(each) for each in (first, second)] == ["done"] * 2
        until(lambda: gate.in_flight == 0)
    finally:
        task_retry.disconnect(note)
    assert shed(gate.stats()) == 1
    assert released(gate.stats()) == {"success": 2}
    assert_at_rest(gate)


def nothing() -> str:
    return "done"


def never() -> None:
    raise AssertionError("it ran")


def test_after_the_last_retry_the_task_fails_with_the_shed(task: Make, gate: Gate) -> None:
    with gate, pytest.raises(Shed, match="gate 'tasks' full"):
        result_of(task(never, gate=gate, max_retries=0).delay())
    assert_at_rest(gate)


def test_where_no_retry_can_succeed_the_task_fails_at_once(task: Make, gate: Gate) -> None:
    with pytest.raises(Shed, match="gate 'tasks' full"):
        result_of(task(never, gate=gate, gate_weight=2).delay())
    assert shed(gate.stats()) == 1


@pytest.mark.parametrize(("on_shed", "acks_late"), [("reject", True), ("ignore", False), ("ignore", True)])
def test_what_is_shed_can_be_dropped(
    task: Make, worker: Any, gate: Gate, on_shed: str, acks_late: bool
) -> None:
    work = task(never, gate=gate, on_shed=on_shed, acks_late=acks_late)
    with gate:
        work.delay()
        until(lambda: shed(gate.stats()) == 1)
        until(lambda: not state.active_requests and not state.reserved_requests)
        assert not worker.timer.queue  # nothing is to come later
    assert shed(gate.stats()) == 1
    assert_at_rest(gate)


def test_a_shed_in_the_body_has_the_same_consequence(task: Make, gate: Gate) -> None:
    pool = Gate("pool", limit=1)
    held = pool.try_admit()
    assert held is not None

    def body() -> str:
        check_out(pool).leave()
        return "done"

    result = task(body, gate=gate).delay()
    until(lambda: shed(pool.stats()) == 1 and gate.in_flight == 0)
    held.release()
    assert result_of(result) == "done"
    until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {"ignore": 1, "success": 1}
    assert_at_rest(gate)
    assert_at_rest(pool)


# --- priority --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "headers", "priority"),
    [
        ({}, None, Priority.CRITICAL),
        ({"gate_priority": "sheddable"}, None, Priority.SHEDDABLE),
        ({"gate_priority": "sheddable"}, {"tidegate-priority": "critical_plus"}, Priority.CRITICAL_PLUS),
        ({}, {"tidegate-priority": "emperor"}, Priority.SHEDDABLE),
        ({}, {"tidegate-priority": 7}, Priority.SHEDDABLE),
        ({"priority_header": None}, {"tidegate-priority": "critical_plus"}, Priority.CRITICAL),
        ({"priority_header": "x-mine"}, {"x-mine": "sheddable_plus"}, Priority.SHEDDABLE_PLUS),
    ],
)
def test_priority_from_the_task_or_the_message(
    task: Make, options: dict[str, Any], headers: dict[str, str] | None, priority: Priority
) -> None:
    gate, pool = Gate("tasks", limit=4), Gate("pool", limit=4)

    def body() -> None:
        check_out(pool).leave()

    result_of(task(body, gate=gate, **options).apply_async(headers=headers))
    assert gate.stats().admitted[priority] == 1
    assert pool.stats().admitted[priority] == 1  # it reaches what the task asks inside


RULES = Classifier(
    [
        {"match": {"header.X-Plan": "free"}, "priority": "sheddable"},
        {"match": {"routing_key": "nightly", "task": "test_priority_*"}, "priority": "sheddable_plus"},
    ]
)


@pytest.mark.parametrize(
    ("sent", "priority"),
    [
        ({}, Priority.CRITICAL),
        ({"headers": {"X-Plan": "free"}}, Priority.SHEDDABLE),
        ({"headers": {"x-plan": "free", "tidegate-priority": "critical_plus"}}, Priority.CRITICAL_PLUS),
        ({"headers": {"x-plan": 7}}, Priority.CRITICAL),
        ({"routing_key": "nightly"}, Priority.SHEDDABLE_PLUS),
    ],
)
def test_priority_by_rules(task: Make, gate: Gate, sent: dict[str, Any], priority: Priority) -> None:
    gated = task(nothing, gate=gate, gate_priority=RULES)
    assert gated.apply(**sent).get() == "done"
    assert gate.stats().admitted[priority] == 1


def test_the_queue_that_a_worker_took_it_from(task: Make, gate: Gate, app: Celery) -> None:
    queue = app.conf.task_default_queue
    rules = Classifier([{"match": {"routing_key": queue}, "priority": "sheddable"}])
    assert result_of(task(nothing, gate=gate, gate_priority=rules).apply_async()) == "done"
    assert gate.stats().admitted[Priority.SHEDDABLE] == 1


def test_the_priority_of_a_message_outlives_a_retry(task: Make, gate: Gate) -> None:
    held = gate.try_admit()
    assert held is not None
    result = task(nothing, gate=gate).apply_async(headers={"tidegate-priority": "critical_plus"})
    until(lambda: shed(gate.stats()) == 1)
    held.release()
    assert result_of(result) == "done"
    assert gate.stats().admitted[Priority.CRITICAL_PLUS] == 1


# --- faults ----------------------------------------------------------------------------------------


class Unexpected(BaseException):
    """What nobody catches."""


def outcomes_of(make: Make, body: Any, **options: Any) -> dict[str, int]:
    """What four tasks with this body were, to their gate."""
    gate = Gate("tasks", limit=4)
    work = make(body, gate=gate, **options)
    for result in [work.delay() for _ in range(4)]:
        result_of(result, propagate=False)
    until(lambda: gate.in_flight == 0)
    outcomes = released(gate.stats())
    assert_at_rest(gate)
    return outcomes


@leak("exception")
@pytest.mark.parametrize(
    ("error", "outcome"), [(ValueError("a bug"), "success"), (TimeoutError("the database"), "overload")]
)
def test_a_task_that_raises(task: Make, error: Exception, outcome: str) -> None:
    def body() -> None:
        raise error

    assert outcomes_of(task, body) == {outcome: 4}


@leak("timeout")
def test_a_task_beyond_its_soft_time_limit_was_too_much(task: Make) -> None:
    def body() -> None:
        raise SoftTimeLimitExceeded  # as the pools that have such a limit do: see the test with Redis

    assert outcomes_of(task, body) == {"overload": 4}


@leak("exception")
def test_a_task_that_retries_by_itself_says_why(task: Make) -> None:
    def body(self: Any) -> str:
        if self.request.retries == 0:
            raise self.retry(exc=TimeoutError("the database"), countdown=0)
        return "done"

    assert outcomes_of(task, body, bind=True) == {"overload": 4, "success": 4}


@leak("base-exception")
def test_a_task_that_raises_what_nobody_catches(app: Celery, gate: Gate) -> None:
    @app.task(base=GatedTask, gate=gate, lazy=False)
    def unexpected() -> None:
        raise Unexpected

    for _ in range(3):
        with pytest.raises(Unexpected):
            unexpected.apply()
    assert_at_rest(gate)


@leak("nested")
def test_a_pool_hook_in_the_task_joins_its_permit(task: Make, gate: Gate) -> None:
    def body() -> int:
        hold = check_out(gate)
        try:
            return gate.in_flight
        finally:
            hold.leave()

    work = task(body, gate=gate)
    for _ in range(8):  # on each thread of the pool more than once
        assert result_of(work.delay()) == 1
        until(lambda: gate.in_flight == 0)
    assert shed(gate.stats()) == 0
    assert_at_rest(gate)


# --- without a worker ------------------------------------------------------------------------------


def test_a_task_called_like_a_function_raises_the_shed(app: Celery, gate: Gate) -> None:
    @app.task(base=GatedTask, gate=gate, bind=True)
    def called(self: Any, number: int) -> tuple[int, int, Any]:
        return number, gate.in_flight, self.request.args

    assert called(3) == (3, 1, (3,))
    with gate, pytest.raises(Shed):
        called(3)
    assert_at_rest(gate)


def test_a_task_without_a_gate_is_a_task(app: Celery) -> None:
    @app.task(base=GatedTask)
    def free() -> str:
        return "done"

    assert free.apply().get() == "done"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"gate": "db"}, TypeError, "gate must be a Gate, got 'db'"),
        ({"gate_priority": "emperor"}, ConfigError, "emperor"),
        (
            {"gate_priority": Classifier([{"match": {"path": "/"}, "priority": "sheddable"}])},
            ConfigError,
            r"may name task, routing_key and header\.NAME, got 'path'",
        ),
        ({"on_shed": "wait"}, ConfigError, "on_shed must be 'retry', 'reject' or 'ignore', got 'wait'"),
    ],
)
def test_bad_options_are_refused(
    app: Celery, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        app.task(base=GatedTask, lazy=False, **options)(nothing)


@pytest.mark.parametrize(
    ("retry_after", "retries", "shortest"),
    [
        (None, 0, 1.0),
        (0.01, 0, 1.0),
        (7.5, 0, 7.5),
        (None, 3, 8.0),
        (5.0, 2, 20.0),
        (1e9, 0, 600.0),
        (1.0, 9_999, 600.0),
    ],
)
def test_the_countdown_grows_and_is_jittered_upwards_only(
    retry_after: float | None, retries: int, shortest: float
) -> None:
    refusal = Shed("tasks", "limit", "critical", 1, 1, retry_after)
    waits = {countdown(refusal, retries) for _ in range(200)}
    assert min(waits) >= shortest
    assert max(waits) <= shortest * 1.5
    assert len(waits) > 1


def test_a_closed_gate_is_another_workers_turn() -> None:
    assert countdown(Shed("tasks", "closed", "critical", 0, 1, float("inf")), 0) <= 1.5


def test_the_package_does_not_import_it() -> None:
    assert output_of("import sys, tidegate; print('celery' in sys.modules)") == "False\n"


@leak("keyboard-interrupt")
def test_interrupts_at_any_moment() -> None:
    rounds = 5_000
    script = Path(__file__).with_name("task_interrupts.py")
    run = subprocess.run(
        [sys.executable, str(script), str(rounds), "7"],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    counts = json.loads(run.stdout)
    assert counts["interrupted"] > rounds // 20
    assert counts["left"] == 0


def test_it_can_be_the_base_of_all_tasks(gate: Gate) -> None:
    with Celery(
        "base", broker="memory://", task_cls="tidegate.celery:GatedTask", set_as_current=False
    ) as app:

        @app.task(gate=gate, shared=False)
        def gated() -> int:
            return gate.in_flight

        @app.task(shared=False)
        def free() -> int:
            return gate.in_flight

        assert (gated.apply().get(), free.apply().get()) == (1, 0)


def test_a_word_in_celerys_own_priority_is_refused(app: Celery) -> None:
    with pytest.raises(ConfigError, match="gate_priority"):

        @app.task(base=GatedTask, priority="sheddable")
        def task() -> None: ...

        task.name  # noqa: B018 - Celery makes a task when it is first used
