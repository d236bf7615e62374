"""What hooks are told: each kind of event, by every way that leads to it, once."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from gatekit import assert_at_rest, shed, together
from tidegate import ConfigError, Event, EventKind, Gate, Outcome, Priority, Reason, Shed
from tidegate._native import Hold
from tidegate.testing import ManualClock


def told(gate: Gate, events: Any = None) -> list[Event]:
    """What a hook of this gate is told from now on."""
    seen: list[Event] = []
    gate.subscribe(seen.append, events)
    return seen


def kinds(events: list[Event]) -> list[str]:
    return [str(event.kind) for event in events]


@pytest.fixture
def gate() -> Gate:
    return Gate("db", limit=1, clock=ManualClock(2_500_000_000))


# --- sheds -------------------------------------------------------------------------------------


def by_block(gate: Gate) -> None:
    with gate:
        pass


def by_exit_stack(gate: Gate) -> None:
    with ExitStack() as stack:
        stack.enter_context(gate)


def by_admission(gate: Gate) -> None:
    with gate.admit():
        pass


def by_try_admit(gate: Gate) -> None:
    assert gate.try_admit() is None
    raise Shed("db", "limit", "critical", 1, 1)  # as the others end


def by_guard(gate: Gate) -> None:
    gate.guard(lambda: None)()


def by_async_block(gate: Gate) -> None:
    async def enter() -> None:
        async with gate:
            pass

    asyncio.run(enter())


def by_async_admission(gate: Gate) -> None:
    async def enter() -> None:
        async with gate.admit():
            pass

    asyncio.run(enter())


def by_await(gate: Gate) -> None:
    async def enter() -> None:
        await gate.admit()

    asyncio.run(enter())


WAYS = [
    by_block,
    by_exit_stack,
    by_admission,
    by_try_admit,
    by_guard,
    by_async_block,
    by_async_admission,
    by_await,
]


@pytest.mark.parametrize("way", WAYS)
def test_a_shed_is_told_once_whichever_way_it_came(gate: Gate, way: Callable[[Gate], None]) -> None:
    events = told(gate)
    with gate, pytest.raises(Shed):
        way(gate)
    (event,) = events
    assert event.fields == {
        "reason": Reason.LIMIT,
        "priority": Priority.CRITICAL,
        "weight": 1,
        "in_flight": 1,
        "limit": 1,
    }
    assert (event.kind, event.gate, event.at) == (EventKind.SHED, "db", 2.5)
    assert shed(gate.stats()) == 1
    assert_at_rest(gate)


def test_a_shed_says_what_was_asked_for_and_why_it_was_refused(gate: Gate) -> None:
    gate.set_limit(10)
    events = told(gate, "shed")
    with gate.admit(weight=7):
        assert gate.try_admit(priority="sheddable", weight=3) is None
        assert gate.try_admit(weight=4) is None
    gate.close()
    assert gate.try_admit(priority="sheddable_plus") is None
    assert [(event.reason, event.priority, event.weight, event.in_flight) for event in events] == [
        ("priority", "sheddable", 3, 7),
        ("limit", "critical", 4, 7),
        ("closed", "sheddable_plus", 1, 0),
    ]


def test_dry_run_sheds_nothing_and_tells_nothing() -> None:
    gate = Gate("db", limit=0, enforce=False)
    events = told(gate)
    with gate, gate.admit():
        pass
    assert not events


# --- changes -----------------------------------------------------------------------------------


def test_a_change_of_the_limit_is_told_as_the_history_has_it(gate: Gate) -> None:
    events = told(gate)
    gate.set_limit(5, cause="deploy")
    gate.set_limit(5)
    assert [event.fields for event in events] == [
        {"previous": 1, "limit": 5, "cause": "deploy"},
        {"previous": 5, "limit": 5},
    ]
    first, second = events
    assert (first.kind, first.cause, second.cause) == (EventKind.LIMIT, "deploy", None)
    assert [event.at for event in events] == [change.at for change in gate.limit_history]


def test_thresholds_and_dry_run_are_told_as_they_are_from_then_on(gate: Gate) -> None:
    gate.set_limit(10)
    events = told(gate)
    gate.set_thresholds({"sheddable": 0.5})
    gate.set_enforce(False)
    gate.set_enforce(True)
    assert kinds(events) == ["thresholds", "enforce", "enforce"]
    assert events[0].thresholds == gate.thresholds
    assert [event.enforce for event in events] == [None, False, True]


def test_a_refused_change_is_none(gate: Gate) -> None:
    events = told(gate)
    with pytest.raises(ConfigError):
        gate.set_limit(-1)
    with pytest.raises(ConfigError):
        gate.set_thresholds({"critical": 2.0})
    assert not events


# --- the end -----------------------------------------------------------------------------------


def test_closing_is_told_once_and_so_is_the_last_to_leave(gate: Gate) -> None:
    gate.set_limit(2)
    events = told(gate)
    with gate.admit():
        with gate:
            gate.close()
            gate.close()
            assert gate.drain(0) is False
            assert kinds(events) == ["closed"]
            assert events[0].in_flight == 2
        assert kinds(events) == ["closed"]
    assert kinds(events) == ["closed", "drained"]
    assert gate.drain(0) is True
    assert kinds(events) == ["closed", "drained"]
    assert events[1].fields == {}


@pytest.mark.parametrize("last", ["permit", "block", "over", "collected"])
def test_whoever_leaves_last(last: str) -> None:
    gate = Gate("db", limit=0 if last == "over" else 1, enforce=last != "over")
    events = told(gate, ["drained"])
    if last == "block":
        with gate:
            gate.close()
            assert not events
    else:
        permit = gate.try_admit()
        assert permit is not None
        gate.close()
        assert not events
        if last == "collected":
            with pytest.warns(ResourceWarning):
                del permit
        else:
            permit.release()
    assert kinds(events) == ["drained"]


@pytest.mark.parametrize("end", ["close", "drain", "drain_async"])
def test_an_empty_gate_is_drained_when_it_is_closed(gate: Gate, end: str) -> None:
    events = told(gate)

    async def drain() -> None:
        await gate.drain_async()

    {"close": gate.close, "drain": gate.drain, "drain_async": lambda: asyncio.run(drain())}[end]()
    assert kinds(events) == ["closed", "drained"]


def test_of_many_who_close_a_gate_one_did() -> None:
    for _ in range(20):
        gate = Gate("db", limit=1)
        events = told(gate)
        together(*[gate.close] * 4, *[lambda: gate.drain(10)] * 4)  # noqa: B023 - called in this round
        assert sorted(kinds(events)) == ["closed", "drained"]


def test_who_subscribes_after_closing_still_hears_of_the_last(gate: Gate) -> None:
    with gate:
        gate.close()
        events = told(gate)
    assert kinds(events) == ["drained"]


# --- permits -----------------------------------------------------------------------------------


def test_permits_are_told_only_to_who_asks(gate: Gate) -> None:
    default, asked = told(gate), told(gate, ["released"])
    with gate.admit():
        pass
    gate.close()
    assert kinds(default) == ["closed", "drained"]
    assert kinds(asked) == ["released"]


def test_a_permit_says_what_became_of_it() -> None:
    clock = ManualClock()
    gate = Gate("db", limit=10, timing=True, clock=clock)
    events = told(gate, "released")
    permit = gate.try_admit(priority="sheddable", weight=3)
    assert permit is not None
    clock.advance(1_500_000_000)
    assert permit.release("overload") is True
    assert permit.release() is False
    assert [event.fields for event in events] == [
        {
            "priority": Priority.SHEDDABLE,
            "outcome": Outcome.OVERLOAD,
            "duration": 1.5,
            "weight": 3,
            "over": False,
        }
    ]
    assert events[0].at == 1.5


def test_without_timing_nobody_knows_how_long(gate: Gate) -> None:
    events = told(gate, "released")
    with gate.admit():
        pass
    assert (events[0].duration, "duration" in events[0].fields) == (None, False)


def test_the_outcome_is_what_the_gate_counted() -> None:
    gate = Gate("db", limit=2, outcomes={KeyError: "overload"})
    events = told(gate, "released")
    guarded = gate.guard(lambda error: (_ for _ in ()).throw(error).send(None))
    for error in (ValueError(), TimeoutError(), KeyError(), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            guarded(error)

    async def cancelled() -> None:
        async with gate.admit():
            asyncio.current_task().cancel()
            await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    permit = gate.try_admit()
    with pytest.warns(ResourceWarning):
        del permit
        gc.collect()
    outcomes = ["success", "overload", "overload", "ignore", "ignore", "ignore"]
    assert [event.outcome for event in events] == outcomes
    assert gate.stats().released == {outcome: outcomes.count(outcome) for outcome in Outcome}


def test_a_permit_that_several_hold_is_told_of_once_by_the_last_to_leave(gate: Gate) -> None:
    events = told(gate, ["shed", "released"])
    first = Hold.enter(gate)
    second = first.join()
    assert second is not None
    with pytest.raises(Shed):
        Hold.enter(gate)
    first.leave("overload")
    assert kinds(events) == ["shed"]
    second.leave()
    assert kinds(events) == ["shed", "released"]
    assert events[1].outcome == "overload"
    assert_at_rest(gate)


def test_bare_blocks_have_no_permit_to_tell_of(gate: Gate) -> None:
    events = told(gate, "released")
    with gate:
        pass
    assert not events


def test_what_dry_run_let_in_carries_its_mark() -> None:
    gate = Gate("db", limit=0, enforce=False)
    events = told(gate, "released")
    with gate.admit():
        pass
    assert [event.over for event in events] == [True]


# --- subscribing -------------------------------------------------------------------------------


def test_hooks_are_called_in_order_and_get_what_they_asked_for(gate: Gate) -> None:
    calls: list[str] = []
    for name, events in [
        ("all", None),
        ("sheds", EventKind.SHED),
        ("both", {"shed", "limit"}),
        ("end", ["closed"]),
    ]:
        gate.subscribe(lambda event, name=name: calls.append(f"{name}: {event.kind}"), events)  # type: ignore[misc]
    gate.set_limit(0)
    assert gate.try_admit() is None
    assert calls == ["all: limit", "both: limit", "all: shed", "sheds: shed", "both: shed"]


def test_the_same_hook_twice_is_two(gate: Gate) -> None:
    seen: list[Event] = []
    first, _second = gate.subscribe(seen.append), gate.subscribe(seen.append)
    gate.set_limit(2)
    assert len(seen) == 2
    first()
    first()
    gate.set_limit(3)
    assert len(seen) == 3


def test_a_subscription_ends_when_called_or_with_its_block(gate: Gate) -> None:
    seen: list[Event] = []
    unsubscribe = gate.subscribe(seen.append)
    with gate.subscribe(seen.append, events=["limit"]) as subscription:
        assert repr(subscription).startswith("<Subscription of <built-in method append")
        gate.set_limit(2)
    gate.set_limit(3)
    unsubscribe()
    gate.set_limit(4)
    assert [event.limit for event in seen] == [2, 2, 3]


def test_a_gate_tells_of_itself_alone(gate: Gate) -> None:
    events = told(gate)
    Gate("db", limit=0).try_admit()
    assert not events


@pytest.mark.parametrize(
    ("hook", "events", "error", "message"),
    [
        (None, None, TypeError, "hook must be a callable, got None"),
        (print, "sheds", ConfigError, 'a kind of event must be one of shed, limit, .* got "sheds"'),
        (print, ["shed", "Limit"], ConfigError, 'got "Limit"'),
        (print, ["\udcff"], ConfigError, "a kind of event must be one of"),
        (print, [], ConfigError, "events must name at least one kind, got none"),
        (print, [1], TypeError, "a kind of event must be a str, got 1"),
        (print, 7, TypeError, "events must be kinds of events, got 7"),
    ],
)
def test_bad_input_is_refused_and_subscribes_nothing(
    gate: Gate,
    hook: Any,
    events: Any,
    error: type[Exception],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(error, match=message):
        gate.subscribe(hook, events)
    gate.set_limit(0)
    assert gate.try_admit() is None
    assert capsys.readouterr().out == ""


def test_an_events_text_shows_its_fields_and_they_cannot_be_set(gate: Gate) -> None:
    events = told(gate)
    gate.set_limit(2, cause="deploy")
    (event,) = events
    assert repr(event) == "<Event limit of gate 'db' at 2.500 s, previous 1, limit 2, cause deploy>"
    with pytest.raises(AttributeError):
        event.limit = 3  # type: ignore[misc]
