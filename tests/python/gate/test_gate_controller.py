"""A gate whose limit moves by itself: what each way in tells it, what it shows, and who is told of it."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import coroutine
from typing import Any

import pytest
from gatekit import assert_at_rest, in_child, released, shed, together
from tidegate import ConfigError, Event, Gate, Outcome, Shed
from tidegate.testing import ManualClock

SECOND = 1_000_000_000
OBJECTIVE = 2.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(SECOND)


@pytest.fixture
def gate(clock: ManualClock) -> Gate:
    return Gate("db", controller="goodput", objective=OBJECTIVE, min=4, max=200, clock=clock)


# Each is a way in that stays inside until it is gone on with.


def by_block(gate: Gate) -> Any:
    with gate:
        yield


def by_async_block(gate: Gate) -> Any:
    async def enter() -> None:
        async with gate:
            await meanwhile()

    return enter().__await__()


def by_admission(gate: Gate) -> Any:
    with gate.admit():
        yield


def by_async_admission(gate: Gate) -> Any:
    async def enter() -> None:
        async with gate.admit():
            await meanwhile()

    return enter().__await__()


def by_permit(gate: Gate) -> Any:
    permit = gate.try_admit()
    if permit is None:
        raise Shed("db", "limit", "critical", 1, 1)
    with permit:
        yield


def by_guard(gate: Gate) -> Any:
    @gate.guard
    def guarded() -> Any:
        yield

    return guarded()


def by_exit_stack(gate: Gate) -> Any:
    with ExitStack() as stack:
        stack.enter_context(gate)
        yield


@coroutine
def meanwhile() -> Any:
    yield


EXACT = [by_block, by_async_block, by_admission, by_async_admission, by_permit, by_guard]
Way = Callable[[Gate], Any]


def served(
    gate: Gate,
    clock: ManualClock,
    seconds: float,
    completions: int,
    way: Way = by_block,
    after_each: Callable[[], None] = lambda: None,
) -> None:
    """So many come out, each after about so long. The gate is always full, and somebody is turned away."""
    inside: deque[Any] = deque()
    try:
        for _ in range(completions):
            with suppress(Shed):
                while True:
                    entering = way(gate)
                    next(entering)
                    inside.append(entering)
            clock.advance(int(seconds * SECOND / max(1, len(inside))))
            leave(inside)
            after_each()
    finally:
        while inside:
            leave(inside)


def leave(inside: deque[Any]) -> None:
    with suppress(StopIteration):
        next(inside.popleft())


# --- what it is told ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", EXACT)
def test_every_way_in_tells_how_long_it_took(gate: Gate, clock: ManualClock, way: Way) -> None:
    served(gate, clock, 3 * OBJECTIVE, 150, way)
    history = gate.limit_history
    assert [change.cause for change in history][:1] == ["lost"]
    assert gate.limit == history[-1].limit < 28
    report = gate.controller
    assert report.window.good == 0 < report.window.completions
    assert report.window.mean_latency == pytest.approx(3 * OBJECTIVE, rel=0.2)
    assert_at_rest(gate)


@pytest.mark.parametrize("way", EXACT)
def test_what_is_just_in_time_is_good(gate: Gate, clock: ManualClock, way: Way) -> None:
    """Latencies that are all alike: an estimate from their mean would take a third of them for late."""
    served(gate, clock, 0.9 * OBJECTIVE, 100, way)
    window = gate.controller.window
    assert window.good == window.completions > 0
    assert "lost" not in [change.cause for change in gate.limit_history]


def test_an_exit_stack_tells_how_long_all_took_together(gate: Gate, clock: ManualClock) -> None:
    """It asks the class, so its entries are bare: counted exactly, good by an estimate from the mean."""
    served(gate, clock, 3 * OBJECTIVE, 150, by_exit_stack)
    window = gate.controller.window
    assert window.mean_latency == pytest.approx(3 * OBJECTIVE, rel=0.2)
    assert gate.limit_history[0].cause == "lost"
    assert_at_rest(gate)


def test_outcomes_decide_what_is_good(clock: ManualClock) -> None:
    class QueryCanceledError(Exception):
        pass

    gate = Gate(
        "db",
        controller="goodput",
        objective=OBJECTIVE,
        prior=10,
        outcomes={QueryCanceledError: "overload"},
        clock=clock,
    )

    def fail(error: type[BaseException], times: int) -> None:
        for _ in range(times):
            with pytest.raises(error), gate:
                clock.advance(SECOND // 10)
                raise error

    fail(asyncio.CancelledError, 100)
    fail(KeyboardInterrupt, 100)
    assert gate.limit_history == []
    fail(ValueError, 1)  # whoever looks shows what was before
    assert gate.controller.window.completions <= 1, "what is ignored is in no window"
    before = gate.limit
    fail(QueryCanceledError, 60)
    assert gate.limit_history[0].cause == "lost" and gate.limit < before
    assert released(gate.stats()) == {"ignore": 200, "success": 1, "overload": 60}
    fail(TimeoutError, 40)
    assert gate.controller.window.good == 0


def test_it_comes_back_after_an_outage(gate: Gate, clock: ManualClock) -> None:
    served(gate, clock, 10 * OBJECTIVE, 300)
    assert gate.limit < 14
    served(gate, clock, 0.1, 3_000)
    assert gate.limit >= 28
    causes = {change.cause for change in gate.limit_history}
    assert causes <= {"raise", "lower", "lost"} and {"raise", "lost"} <= causes
    assert all(4 <= change.limit <= 200 for change in gate.limit_history)
    assert_at_rest(gate)


def test_in_dry_run_it_sees_what_enforcement_would_let_in(clock: ManualClock) -> None:
    gate = Gate("db", controller="goodput", objective=OBJECTIVE, prior=10, enforce=False, clock=clock)
    for _ in range(10):
        with ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(gate.admit())
            clock.advance(10 * SECOND)
    assert gate.limit < 10
    assert gate.limit_history[0].cause == "lost"


def test_an_objective_alone_moves_nothing(clock: ManualClock) -> None:
    gate = Gate("db", 5, objective=OBJECTIVE, clock=clock)
    served(gate, clock, 10 * OBJECTIVE, 100)
    assert (gate.controller, gate.objective, gate.limit, gate.limit_history) == (None, OBJECTIVE, 5, [])
    assert_at_rest(gate)


# --- what it shows -----------------------------------------------------------------------------------


def test_a_gate_without_one_says_so() -> None:
    gate = Gate("db", 5)
    assert (gate.controller, gate.objective, gate.pressure) == (None, None, None)


def test_what_it_is_at(gate: Gate, clock: ManualClock) -> None:
    report = gate.controller
    assert (report.kind, report.min, report.max, report.prior) == ("goodput", 4, 200, 28)
    assert (report.objective, report.cause) == (OBJECTIVE, "hold")
    assert (report.looks, report.moves, report.probes) == (0, 0, 0)
    assert report.window.completions == 0 and report.window.mean_latency is None
    assert report.at == 1.0
    assert repr(report) == '<ControllerReport: goodput within 4 to 200, last "hold", 0 moves>'
    served(gate, clock, 0.5, 1_000)
    after = gate.controller
    assert after.looks > 0 and after.probes > 0
    assert after.at == pytest.approx(clock.now_ns / SECOND)
    assert after.next_look >= after.at
    window = after.window
    assert window.admissions > 0 and window.refusals > 0
    assert window.in_flight > 0 and window.elapsed > 0
    assert report.looks == 0, "a reading does not change any more"


@pytest.mark.parametrize("kind", ["fixed", "aimd", "gradient2", "vegas", "goodput"])
def test_each_kind_keeps_to_its_bounds(kind: Any, clock: ManualClock) -> None:
    gate = Gate("db", controller=kind, min=5, max=30, prior=20, objective=OBJECTIVE, clock=clock)
    for seconds in (0.1, 30.0, 0.01, 5.0):
        served(gate, clock, seconds, 300)
        assert 5 <= gate.limit <= 30
    assert gate.controller.kind == kind
    assert kind != "fixed" or gate.limit == 20
    assert_at_rest(gate)


def test_set_limit_starts_it_anew_from_there(gate: Gate, clock: ManualClock) -> None:
    served(gate, clock, 10 * OBJECTIVE, 100)
    gate.set_limit(40, cause="capacity test")
    assert (gate.limit, gate.controller.prior) == (40, 40)
    assert gate.limit_history[-1].cause == "capacity test"
    before = gate.limit_history
    for outside in (3, 201, 0):
        with pytest.raises(ConfigError, match=rf"from min \(4\) to max \(200\) .*, got {outside}"):
            gate.set_limit(outside)
    assert [change.limit for change in gate.limit_history] == [change.limit for change in before]
    assert (gate.limit, gate.controller.prior) == (40, 40)


def test_a_childs_controller_starts_from_its_parents_limit(gate: Gate, clock: ManualClock) -> None:
    served(gate, clock, 10 * OBJECTIVE, 100)
    found = gate.limit

    def child() -> list[int]:
        prior = gate.controller.prior
        served(gate, clock, 10 * OBJECTIVE, 100)
        return [prior, gate.limit, gate.in_flight]

    with gate:  # the child's way out of this block is none
        prior, limit, in_flight = in_child(child)
    assert (prior, in_flight) == (found, 0)
    assert limit <= found and gate.limit == found
    assert_at_rest(gate)


# --- blocks that keep their ticket -------------------------------------------------------------------


def test_blocks_nest_and_end_in_any_order(gate: Gate) -> None:
    with gate, gate:
        with gate:
            assert gate.in_flight == 3
        assert gate.in_flight == 2
    blocks = [by_block(gate) for _ in range(5)]
    for block in blocks:
        next(block)
    assert gate.in_flight == 5
    for at in (3, 0, 4, 1, 2):
        blocks[at].close()
    assert released(gate.stats()) == {"success": 3, "ignore": 5}
    assert_at_rest(gate)


def test_ways_that_are_taken_by_hand_agree_too(gate: Gate) -> None:
    gate.__enter__()
    gate.__exit__(None, None, None)
    enter, leave = gate.__enter__, gate.__exit__
    for _ in range(3):
        enter()
        leave(None, None, None)
    assert hasattr(gate, "__exit__") and hasattr(gate, "__aexit__")
    with gate:
        assert gate.in_flight == 1
    other = Gate("other", 1, objective=1.0)
    others = other.__exit__
    gate.__enter__()
    assert (gate.in_flight, other.in_flight) == (1, 0)
    gate.__exit__(None, None, None)
    del others
    kept = gate.__exit__
    with ExitStack() as stack:
        gate.__enter__()
        stack.push(gate.__exit__)
        assert gate.in_flight == 1
    del kept
    gc.collect()
    assert_at_rest(gate)
    assert_at_rest(other)


def test_a_way_out_that_is_taken_twice_leaves_once(gate: Gate) -> None:
    enter, leave = gate.__enter__, gate.__exit__
    enter()
    for _ in range(2):
        leave(None, None, None)
    stats = gate.stats()
    assert (stats.in_flight, stats.unmatched_exits, released(stats)) == (0, 1, {"success": 1})


def test_a_way_out_that_is_looked_up_and_dropped_takes_no_permit_with_it(gate: Gate) -> None:
    getattr(gate, "__exit__")  # noqa: B009
    gate.__enter__()
    assert gate.in_flight == 1
    gate.__exit__(None, None, None)
    assert_at_rest(gate)


def test_async_blocks_hold_nothing_before_they_are_awaited(gate: Gate) -> None:
    async def cancelled() -> None:
        entering = gate.__aenter__()
        leaving = gate.__aexit__
        assert gate.in_flight == 0
        await entering
        assert gate.in_flight == 1
        await leaving(None, None, None)
        gate.__aenter__()  # never awaited: nothing to give back
        assert gate.in_flight == 0

    asyncio.run(cancelled())

    async def inside(ready: asyncio.Event) -> None:
        async with gate:
            await ready.wait()

    async def many() -> None:
        ready = asyncio.Event()
        tasks = [asyncio.create_task(inside(ready)) for _ in range(10)]
        await asyncio.sleep(0)
        assert gate.in_flight == 10
        for task in tasks[::2]:
            task.cancel()
        ready.set()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(many())
    assert released(gate.stats()) == {"success": 6, "ignore": 5}
    assert_at_rest(gate)


def test_threads_do_not_mix_their_blocks_up(restless: None) -> None:
    gate = Gate("db", controller="goodput", objective=0.5, prior=8, min=2, max=16)

    def work() -> int:
        entered = 0
        for turn in range(2_000):
            try:
                if turn % 3:
                    with gate:
                        entered += 1
                else:
                    _ = gate.__exit__
                    with gate.admit(), gate:
                        entered += 2
            except Shed:
                entered += turn % 3 == 0 and 0
        return entered

    together(*[work] * 4)
    stats = gate.stats()
    assert sum(stats.admitted.values()) == sum(stats.released.values())
    assert (stats.in_flight, stats.unmatched_exits, stats.collected) == (0, 0, 0)
    assert 2 <= gate.limit <= 16


# --- who is told -------------------------------------------------------------------------------------


def told(gate: Gate, events: Any = "limit") -> list[Event]:
    seen: list[Event] = []
    gate.subscribe(seen.append, events)
    return seen


@pytest.mark.parametrize("way", [*EXACT, by_exit_stack])
def test_each_move_is_told_once_with_its_cause(gate: Gate, clock: ManualClock, way: Way) -> None:
    served(gate, clock, 10 * OBJECTIVE, 100, way)
    before = len(gate.limit_history)
    assert before > 0
    seen = told(gate)  # not of what was before

    def told_at_once() -> None:
        assert len(seen) == gate.controller.moves - before

    served(gate, clock, 10 * OBJECTIVE, 100, way, told_at_once)
    served(gate, clock, 0.1, 600, way, told_at_once)
    history = gate.limit_history[before:]
    assert len(history) > 2
    assert [(e.at, e.previous, e.limit, e.cause) for e in seen] == [
        (change.at, change.previous, change.limit, change.cause) for change in history
    ]
    assert {str(event.kind) for event in seen} == {"limit"}


def test_a_hook_holds_no_lock_and_may_set_the_limit(gate: Gate, clock: ManualClock) -> None:
    seen: list[int] = []

    def hook(event: Event) -> None:
        seen.append(event.limit)
        if event.cause == "lost":
            thread = threading.Thread(target=lambda: gate.set_limit(50, cause="hook"))
            thread.start()
            thread.join(30)
            assert not thread.is_alive()
            with gate:
                pass

    gate.subscribe(hook, "limit")
    served(gate, clock, 10 * OBJECTIVE, 200)
    assert 50 in [change.limit for change in gate.limit_history]
    assert seen
    assert_at_rest(gate)


@pytest.mark.parametrize("way", [*EXACT, by_exit_stack])
def test_an_interrupt_in_a_hook_goes_on_to_the_caller_and_nothing_is_lost(
    gate: Gate, clock: ManualClock, way: Way
) -> None:
    def hook(event: Event) -> None:
        raise KeyboardInterrupt

    gate.subscribe(hook, "limit")
    with pytest.raises(KeyboardInterrupt):
        served(gate, clock, 10 * OBJECTIVE, 200, way)
    assert_at_rest(gate)


def test_of_several_threads_one_tells(restless: None) -> None:
    clock = ManualClock(SECOND)
    gate = Gate("db", controller="aimd", min=1, max=50, prior=50, clock=clock)
    seen = told(gate)

    def work() -> None:
        for _ in range(2_000):
            permit = gate.try_admit()
            clock.advance(SECOND // 100)
            if permit is not None:
                permit.release("overload")

    together(*[work] * 4)
    gate.try_admit().release()
    assert len(seen) == gate.controller.moves > 0
    if len(seen) <= 64:
        assert sorted(e.limit for e in seen) == sorted(change.limit for change in gate.limit_history)


def test_a_child_tells_its_own_moves(gate: Gate, clock: ManualClock) -> None:
    seen = told(gate)
    served(gate, clock, 10 * OBJECTIVE, 100)
    in_parent = len(seen)
    assert in_parent > 0

    def child() -> list[Any]:
        served(gate, clock, 0.1, 1)
        told_of_its_parents = len(seen) - in_parent
        served(gate, clock, 0.1, 300)
        served(gate, clock, 10 * OBJECTIVE, 200)
        moves = [change.limit for change in gate.limit_history[in_parent:]]
        return [told_of_its_parents, [event.limit for event in seen[in_parent:]], moves]

    told_of_its_parents, told_in_child, moves = in_child(child)
    assert told_of_its_parents == 0
    assert told_in_child == moves != []
    assert len(seen) == in_parent


def test_what_was_shed_meanwhile_is_counted(gate: Gate, clock: ManualClock) -> None:
    served(gate, clock, 1.0, 20)
    stats = gate.stats()
    assert shed(stats, "limit") == shed(stats) == 20
    assert stats.released[Outcome.SUCCESS] == sum(stats.admitted.values())
