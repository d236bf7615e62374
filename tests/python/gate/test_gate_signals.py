"""A gate that sheds by pressure: what its signals say, what comes of it, and who is told."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from gatekit import assert_at_rest, in_child, shed, together
from tidegate import ConfigError, Event, Gate, Reason, Shed, Signal
from tidegate.testing import ManualClock

SECOND = 1_000_000_000
AT_ONCE: dict[str, Any] = {"enter_for": 0, "leave_for": 0, "dwell": 0, "ramp": 0}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(SECOND)


@pytest.fixture
def gate(clock: ManualClock) -> Gate:
    return Gate("db", 5, signals=[Signal("waits", **AT_ONCE)], clock=clock)


def ask(gate: Gate) -> None:
    """Somebody comes, and goes whether let in or not."""
    permit = gate.try_admit()
    if permit is not None:
        permit.release()


def push(gate: Gate, clock: ManualClock, value: float) -> None:
    """A value, and a moment in which it holds."""
    gate.signal("waits", value)
    clock.advance(SECOND // 10)


# --- what is shed ------------------------------------------------------------------------------------


def by_block(gate: Gate) -> None:
    with gate:
        pass


def by_async_block(gate: Gate) -> None:
    async def enter() -> None:
        async with gate:
            pass

    asyncio.run(enter())


def by_admission(gate: Gate) -> None:
    with gate.admit():
        pass


def by_guard(gate: Gate) -> None:
    gate.guard(lambda: None)()


WAYS = [by_block, by_async_block, by_admission, by_guard]


@pytest.mark.parametrize("way", WAYS)
def test_pressure_sheds_every_way_in(clock: ManualClock, way: Callable[[Gate], None]) -> None:
    gate = Gate("db", 5, signals=[Signal("waits", **AT_ONCE)], default_priority="sheddable", clock=clock)
    way(gate)
    push(gate, clock, 1.0)
    with pytest.raises(Shed) as refused:
        way(gate)
    assert refused.value.reason is Reason.PRESSURE
    assert refused.value.retry_after is None, "nobody knows for how long"
    push(gate, clock, 0.0)
    clock.advance(SECOND)
    way(gate)
    assert shed(gate.stats(), "pressure") == shed(gate.stats()) == 1
    assert_at_rest(gate)


def test_the_least_important_are_shed_first_and_the_most_important_last(
    gate: Gate, clock: ManualClock
) -> None:
    push(gate, clock, 0.85)  # level 0.5
    pressure = gate.pressure
    assert pressure.level == pytest.approx(0.5) and pressure.overloaded
    assert {str(key): share for key, share in pressure.shares.items()} == {
        "critical_plus": 0.0,
        "critical": 0.0,
        "sheddable_plus": 1.0,
        "sheddable": 1.0,
    }
    assert gate.try_admit(priority="sheddable_plus") is None
    for priority in ("critical", "critical_plus"):
        gate.try_admit(priority=priority).release()


def test_in_dry_run_it_is_counted(gate: Gate, clock: ManualClock) -> None:
    gate.set_enforce(False)
    push(gate, clock, 1.0)
    gate.try_admit(priority="sheddable").release()
    assert gate.stats().would_shed["sheddable"] == 1


# --- what the signals say ----------------------------------------------------------------------------


def test_a_pushed_value_holds_for_its_time(gate: Gate, clock: ManualClock) -> None:
    (signal,) = gate.pressure.signals
    assert (signal.name, signal.value, signal.overloaded, signal.reads) == ("waits", None, False, 0)
    assert (signal.enter, signal.leave, signal.full) == (0.85, 0.7, 1.0)
    gate.signal("waits", 0.5, good_for=3)
    clock.advance(2 * SECOND)
    assert gate.pressure.signals[0].value == 0.5
    clock.advance(2 * SECOND)
    assert gate.pressure.signals[0].value is None
    assert signal.value is None, "a reading does not change any more"
    assert repr(gate.pressure.signals[0]) == '<SignalReport "waits": unknown>'


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("other", 0.5), ConfigError, 'no signal has the name "other"'),
        (("waits", 1.1), ConfigError, "from 0 to 1, got 1.1"),
        (("waits", -0.1), ConfigError, "from 0 to 1"),
        (("waits", float("nan")), ConfigError, "from 0 to 1, got NaN"),
        (("waits", 70), ConfigError, "from 0 to 1, got 70"),
        (("waits", 10**400), ConfigError, "from 0 to 1, got inf"),
        (("waits", True), TypeError, "value must be a number, got True"),
        (("waits", "0.5"), TypeError, "value must be a number"),
        (("waits", None), TypeError, "value must be a number"),
        ((1, 0.5), TypeError, "name must be a str"),
        (("cpu", 0.5), ConfigError, 'signal without a source; "cpu" is measured'),
    ],
)
def test_what_breaks_a_rule_is_refused(arguments: Any, error: type[Exception], says: str) -> None:
    gate = Gate("db", 5, signals=[Signal("waits", **AT_ONCE), Signal("cpu")])
    with pytest.raises(error, match=says):
        gate.signal(*arguments)
    assert gate.pressure.signals[0].reads == 0
    with pytest.raises(error if error is TypeError else ConfigError):
        Gate("db", 5).signal(*arguments)


@pytest.mark.parametrize("good_for", [-1, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(gate: Gate, good_for: float) -> None:
    with pytest.raises(ConfigError, match="good_for must be a number of seconds from 0"):
        gate.signal("waits", 0.5, good_for=good_for)


def test_the_gates_own_latency_is_a_signal(clock: ManualClock) -> None:
    gate = Gate("db", 5, objective=2.0, signals=[Signal("latency", **AT_ONCE)], clock=clock)
    for seconds, overloaded in ((0.2, False), (3.0, True)):
        for _ in range(100):
            with suppress(Shed), gate:
                clock.advance(int(seconds * SECOND))
        assert gate.pressure.overloaded == overloaded, gate.pressure.signals
    assert gate.in_flight == 0


def test_the_gates_own_errors_are_a_signal(clock: ManualClock) -> None:
    gate = Gate("db", 5, signals=[Signal("errors", **AT_ONCE)], clock=clock)
    (signal,) = gate.pressure.signals
    assert (signal.enter, signal.leave, signal.full) == (0.1, 0.05, 0.5)
    for _ in range(100):
        permit = gate.try_admit(priority="critical_plus")
        clock.advance(SECOND // 10)
        if permit is not None:
            permit.release("overload")
    assert gate.pressure.overloaded


# --- a function of the user's ------------------------------------------------------------------------


class Function:
    """What it answers, and how often it was asked."""

    def __init__(self, answer: Any = 0.5) -> None:
        self.answer = answer
        self.asked = 0

    def __call__(self) -> Any:
        self.asked += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
def function() -> Function:
    return Function()


@pytest.fixture
def asking(clock: ManualClock, function: Function) -> Gate:
    return Gate("db", 5, signals=[Signal("db", function=function, good_for=1, **AT_ONCE)], clock=clock)


@pytest.mark.parametrize("answer", [0, 1, 0.25, False + 0.5])
def test_it_is_asked_when_its_last_answer_is_too_old(
    asking: Gate, clock: ManualClock, function: Function, answer: float
) -> None:
    assert function.asked == 0, "not before somebody comes"
    function.answer = answer
    for _ in range(10):
        ask(asking)
    assert function.asked == 1
    assert asking.pressure.signals[0].value == answer
    clock.advance(SECOND)
    ask(asking)
    assert function.asked == 2


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: seen.append((told.exc_value, told.object)))
    return seen


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, None),
        (ValueError("away"), "away"),
        (70, 'the answer of signal "db" must be a number from 0 to 1, or None, got 70'),
        (-0.1, "from 0 to 1"),
        (float("nan"), "got NaN"),
        (True, "must be a number from 0 to 1, or None, got True"),
        ("0.5", "must be a number, got '0.5'"),
        (object(), "must be a number, got <object"),
    ],
)
def test_what_is_no_answer_is_unknown_and_told_once(
    asking: Gate, clock: ManualClock, function: Function, unraisable: list[Any], answer: Any, says: str | None
) -> None:
    function.answer = answer
    for _ in range(5):
        asking.try_admit(priority="sheddable").release()
        clock.advance(10 * SECOND)
    (signal,) = asking.pressure.signals
    assert (signal.value, signal.failures) == (None, function.asked)
    assert function.asked >= 5
    assert len(unraisable) == (says is not None)
    for error, where in unraisable:
        assert says in str(error) and where is function
    function.answer = 0.5
    clock.advance(10 * SECOND)
    asking.try_admit().release()
    function.answer = KeyError("again")
    clock.advance(10 * SECOND)
    asking.try_admit().release()
    assert len(unraisable) == (says is not None) + 1, "after an answer a failure is news"
    unraisable.clear()


class Stop(BaseException):
    """As an interrupt, or an exit."""


@pytest.mark.parametrize("way", [*WAYS, lambda gate: gate.try_admit(), lambda gate: gate.pressure])
@pytest.mark.parametrize("full", [False, True])
def test_an_interrupt_in_a_function_goes_on_to_the_caller_who_then_holds_nothing(
    asking: Gate, function: Function, clock: ManualClock, way: Callable[[Gate], Any], full: bool
) -> None:
    if full:
        asking.set_limit(0)
    function.answer = Stop()
    sheds: list[Event] = []
    asking.subscribe(sheds.append, "shed")
    with pytest.raises(Stop):
        way(asking)
    assert len(sheds) == shed(asking.stats()), "who is turned away besides is told of, and counted"
    function.answer = 0.0
    clock.advance(10 * SECOND)
    asking.set_limit(5)
    with asking:
        pass
    assert_at_rest(asking)


def test_a_function_may_use_its_gate(clock: ManualClock) -> None:
    def function() -> float:
        with gate:
            thread = threading.Thread(target=lambda: gate.set_limit(6))
            thread.start()
            thread.join(30)
            assert not thread.is_alive(), "a lock is held"
            return gate.in_flight / gate.limit

    gate = Gate("db", 5, signals=[Signal("db", function=function, **AT_ONCE)], clock=clock)
    with gate:
        pass
    assert gate.pressure.signals[0].value == pytest.approx(1 / 6)
    assert_at_rest(gate)
    del function


def test_one_signal_may_serve_several_gates(clock: ManualClock, function: Function) -> None:
    signal = Signal("db", function=function, **AT_ONCE)
    one, other = (Gate(name, 5, signals=[signal], clock=clock) for name in ("one", "other"))
    del signal
    gc.collect()
    for gate in (one, other):
        gate.try_admit().release()
    assert function.asked == 2
    assert [gate.pressure.signals[0].value for gate in (one, other)] == [0.5, 0.5]


def test_threads_ask_it_one_at_a_time(restless: None) -> None:
    inside = 0
    most = 0

    def function() -> float:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        threading.Event().wait(0.001)
        inside -= 1
        return 0.0

    gate = Gate("db", 100, signals=[Signal("db", function=function, good_for=0, **AT_ONCE)])

    def work() -> None:
        for _ in range(500):
            with gate:
                pass

    together(*[work] * 4)
    assert most == 1
    assert_at_rest(gate)


def test_a_child_asks_for_itself(asking: Gate, function: Function, clock: ManualClock) -> None:
    function.answer = 1.0
    asking.try_admit(priority="critical_plus")
    clock.advance(SECOND)
    assert asking.pressure.overloaded

    def child() -> list[Any]:
        before = asking.pressure.transition_count
        function.answer = 0.0
        clock.advance(10 * SECOND)
        asking.try_admit(priority="sheddable").release()
        return [before <= 1, asking.pressure.overloaded, function.asked]

    fresh, overloaded, asked = in_child(child)
    assert fresh and not overloaded and asked > function.asked
    assert asking.pressure.overloaded


# --- who is told -------------------------------------------------------------------------------------


def test_each_change_is_told_once_with_its_values(gate: Gate, clock: ManualClock) -> None:
    push(gate, clock, 0.9)
    ask(gate)
    seen: list[Event] = []
    gate.subscribe(seen.append)  # not of what was before
    push(gate, clock, 0.5)
    ask(gate)
    clock.advance(SECOND)
    ask(gate)
    push(gate, clock, 0.95)
    ask(gate)
    clock.advance(60 * SECOND)
    ask(gate)
    told = [event for event in seen if event.kind == "pressure"]
    transitions = gate.pressure.transitions
    assert [(e.at, e.signal, e.cause, e.overloaded, e.value, e.threshold, e.held) for e in told] == [
        (t.at, t.signal, t.cause, t.overloaded, t.value, t.threshold, t.held) for t in transitions[1:]
    ]
    assert [event.cause for event in told][:2] == ["left", "entered"]
    assert {event.cause for event in told[2:]} <= {"unknown", "silence"} and len(told) == 3
    assert told[1].fields == {
        "cause": "entered",
        "signal": "waits",
        "overloaded": True,
        "value": 0.95,
        "threshold": 0.85,
        "held": told[1].held,
    }
    assert [t.number for t in transitions] == [1, 2, 3, 4] and gate.pressure.transition_count == 4
    assert str(transitions[2]) == 'signal "waits" overloaded: 0.95 is at or above 0.85 for 0.0 s'


def test_a_look_that_is_asked_for_tells_too(gate: Gate, clock: ManualClock) -> None:
    seen: list[Event] = []
    gate.subscribe(seen.append, "pressure")
    push(gate, clock, 0.9)
    assert gate.pressure.overloaded
    (event,) = seen
    assert event.cause == "entered"


def test_a_child_tells_its_own_changes(gate: Gate, clock: ManualClock) -> None:
    seen: list[Event] = []
    gate.subscribe(seen.append, "pressure")
    for value in (0.9, 0.1, 0.9, 0.1):
        push(gate, clock, value)
        ask(gate)
        clock.advance(SECOND)
        ask(gate)
    before = len(seen)
    assert before == 4

    def child() -> list[str]:
        push(gate, clock, 0.9)
        ask(gate)
        return [event.cause for event in seen[before:]]

    assert in_child(child) == ["entered"]
    assert len(seen) == before
