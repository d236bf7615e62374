"""A hook that raises, re-enters its gate or is interrupted harms nothing: field fault of every event bus."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from gatekit import assert_at_rest, in_child, in_thread, output_of, released, shed, together
from tidegate import Event, Gate, Shed


@pytest.fixture
def gate() -> Gate:
    return Gate("db", limit=1)


def refused(gate: Gate) -> None:
    """One shed."""
    with gate:
        assert gate.try_admit() is None


# --- hooks that raise --------------------------------------------------------------------------


def failing(event: Event) -> None:
    raise ValueError(f"{event.kind} {event.gate}")


def test_what_a_hook_raises_is_reported_and_reaches_nobody(gate: Gate, unraisable: list[Any]) -> None:
    seen: list[str] = []
    gate.subscribe(failing, ["shed", "limit", "thresholds", "enforce", "closed", "drained", "released"])
    gate.subscribe(lambda event: seen.append(event.kind), ["shed", "released", "closed", "drained"])
    refused(gate)
    with pytest.raises(Shed), gate, gate:
        pass
    gate.set_limit(2)
    gate.set_thresholds({})
    gate.set_enforce(True)
    with gate.admit():
        pass
    gate.try_admit().release()
    permit = gate.try_admit()
    with pytest.warns(ResourceWarning):
        del permit
    assert_at_rest(gate)
    seen_so_far = ["shed", "shed", "released", "released", "released"]
    assert seen[:5] == seen_so_far, "the hooks after it were not told"
    gate.close()
    kinds = [str(error) for error, _ in unraisable]
    assert [
        kinds.count(f"{kind} db") for kind in ("limit", "thresholds", "enforce", "closed", "drained")
    ] == [1] * 5
    assert all(where is failing for _, where in unraisable)
    assert shed(gate.stats()) == kinds.count("shed db")


def test_a_shed_raised_by_a_hook_is_not_the_callers(gate: Gate, unraisable: list[Any]) -> None:
    def enters(_event: Event) -> None:
        with gate:
            pytest.fail("it is full")

    gate.subscribe(enters)
    refused(gate)
    assert [type(error) for error, _ in unraisable] == [Shed]
    assert_at_rest(gate)


def test_an_exception_on_its_way_is_not_disturbed(gate: Gate, unraisable: list[Any]) -> None:
    gate.subscribe(failing, ["released"])
    with pytest.raises(KeyError, match="mine") as caught, gate.admit():
        raise KeyError("mine")
    assert caught.value.__context__ is None
    assert released(gate.stats()) == {"success": 1}
    assert len(unraisable) == 1


def test_nor_is_one_during_which_a_permit_is_collected(gate: Gate, unraisable: list[Any]) -> None:
    gate.subscribe(failing, ["released", "drained"])

    def raising() -> None:
        gate.close()
        raise KeyError("mine")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises(KeyError, match="mine") as caught:
            print(gate.try_admit(), raising())  # the permit is known to the evaluation stack alone
    assert caught.value.__context__ is None
    assert [str(error) for error, _ in unraisable] == ["drained db", "released db"]
    assert (gate.in_flight, gate.stats().collected) == (0, 1)


# --- interrupts --------------------------------------------------------------------------------


def interrupting(_event: Event) -> None:
    signal.raise_signal(signal.SIGINT)  # its handler runs before this function ends


CHANGES: dict[str, Callable[[Gate], object]] = {
    "block": lambda gate: gate.__enter__(),
    "admission": lambda gate: gate.admit().__enter__(),
    "try_admit": lambda gate: gate.try_admit(),
    "set_limit": lambda gate: gate.set_limit(0),
    "set_thresholds": lambda gate: gate.set_thresholds({"sheddable": 0}),
    "set_enforce": lambda gate: gate.set_enforce(False),
    "close": lambda gate: gate.close(),
    "drain": lambda gate: gate.drain(0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_interrupt_in_a_hook_reaches_the_caller_and_nothing_is_lost(
    gate: Gate, change: str, unraisable: list[Any]
) -> None:
    others: list[Event] = []
    gate.subscribe(interrupting, ["shed", "limit", "thresholds", "enforce", "closed"])
    gate.subscribe(others.append)
    with pytest.raises(KeyboardInterrupt), gate:
        CHANGES[change](gate)
    assert len(others) >= 1, "the other hooks were not told"
    stats = gate.stats()
    assert (stats.in_flight, sum(stats.admitted.values()), released(stats)) == (0, 1, {"ignore": 1})
    assert not unraisable
    if change == "set_limit":
        assert gate.limit == 0, "what was told of has happened"


def test_an_interrupt_at_a_release_comes_after_it(gate: Gate) -> None:
    gate.subscribe(interrupting, ["released"])
    with pytest.raises(KeyboardInterrupt), gate.admit():
        pass
    permit = gate.try_admit()
    with pytest.raises(KeyboardInterrupt):
        permit.release()
    assert permit.released
    assert released(gate.stats()) == {"success": 2}
    with pytest.raises(KeyboardInterrupt) as caught, gate.admit():
        raise KeyError("mine")
    assert isinstance(caught.value.__context__, KeyError)
    assert gate.in_flight == 0


def test_of_two_exits_one_goes_on_and_one_is_reported(gate: Gate, unraisable: list[Any]) -> None:
    def exits(event: Event) -> None:
        sys.exit(event.limit)

    gate.subscribe(exits)
    gate.subscribe(exits)
    with pytest.raises(SystemExit):
        gate.set_limit(3)
    assert [type(error) for error, _ in unraisable] == [SystemExit]


@pytest.mark.parametrize("event", ["drained", "released"])
def test_an_interrupt_that_nobody_can_be_told_of_is_reported(
    gate: Gate, event: Any, unraisable: list[Any]
) -> None:
    """Whoever leaves last is on its way out of the gate, and a collected permit has no caller."""
    gate.subscribe(interrupting, event)
    permit = gate.try_admit()
    if event == "drained":
        gate.close()
        permit.release()
    else:
        with pytest.warns(ResourceWarning):
            del permit
    assert [type(error) for error, _ in unraisable] == [KeyboardInterrupt]
    assert gate.in_flight == 0


# --- hooks that re-enter -----------------------------------------------------------------------


def test_a_hook_is_not_told_of_its_own_doing_but_the_others_are(gate: Gate) -> None:
    calls = 0
    log: list[str] = []

    def adjusts(event: Event) -> None:
        nonlocal calls
        calls += 1
        assert gate.try_admit() is None  # would be told to this hook again, and so on
        gate.set_limit(gate.limit + 1, cause="adjusted")

    gate.subscribe(adjusts)
    gate.subscribe(lambda event: log.append(event.kind))
    refused(gate)
    assert calls == 1
    assert log == ["shed", "limit", "shed"]
    assert (gate.limit, shed(gate.stats())) == (2, 2)
    assert_at_rest(gate)


def test_hooks_that_provoke_each_other_come_to_an_end(gate: Gate) -> None:
    calls = {"one": 0, "other": 0, "log": 0}

    def provoking(name: str) -> Callable[[Event], None]:
        def hook(_event: Event) -> None:
            calls[name] += 1
            gate.try_admit()

        return hook

    gate.subscribe(provoking("one"))
    gate.subscribe(provoking("other"))
    gate.subscribe(lambda _event: calls.update(log=calls["log"] + 1))
    refused(gate)
    # The shed; one's of it, told to the other and the log; the other's of it, told to one and the log; and
    # what each of them did then, told to nobody.
    assert calls == {"one": 2, "other": 2, "log": 3}
    assert shed(gate.stats()) == 5


def test_hooks_of_two_gates_that_provoke_each_other_come_to_an_end() -> None:
    gates = [Gate("one", limit=0), Gate("other", limit=0)]
    for gate, other in (gates, gates[::-1]):
        gate.subscribe(lambda _event, other=other: other.try_admit())  # type: ignore[misc]
    assert gates[0].try_admit() is None
    assert [shed(gate.stats()) for gate in gates] == [2, 1]


def test_a_hook_is_told_again_once_it_has_ended(gate: Gate, unraisable: list[Any]) -> None:
    gate.subscribe(failing)
    for _ in range(3):
        refused(gate)
    assert len(unraisable) == 3


@pytest.mark.parametrize("event", ["shed", "limit", "closed", "drained", "released"])
def test_a_hook_may_do_anything_to_its_gate(gate: Gate, event: Any) -> None:
    done: list[bool] = []

    def hook(_event: Event) -> None:
        unsubscribe()
        gate.subscribe(lambda _event: None)
        for _ in range(2):
            with gate.subscribe(lambda _event: None), suppress(Shed), gate, gate.admit():
                pass
        gate.set_limit(gate.limit)
        gate.set_thresholds({})
        gate.set_enforce(True)
        gate.stats()
        gate.close()
        done.append(gate.drain(0))

    unsubscribe = gate.subscribe(hook, event)
    permit = gate.try_admit()
    assert gate.try_admit() is None
    gate.set_limit(1)
    permit.release()
    gate.close()
    assert len(done) == 1
    stats = gate.stats()
    assert (stats.in_flight, stats.unmatched_exits) == (0, 0)
    assert sum(stats.admitted.values()) == sum(stats.released.values())
    assert gate.closed


def test_one_that_is_unsubscribed_by_one_before_it_is_not_called(gate: Gate) -> None:
    calls: list[str] = []
    gate.subscribe(lambda _event: second())
    second = gate.subscribe(lambda _event: calls.append("second"))
    gate.subscribe(lambda _event: calls.append("third"))
    refused(gate)
    assert calls == ["third"]


def test_one_that_is_subscribed_meanwhile_is_told_of_the_next(gate: Gate) -> None:
    seen: list[Event] = []
    subscribing = gate.subscribe(lambda _event: (subscribing(), gate.subscribe(seen.append)))
    refused(gate)
    assert not seen
    refused(gate)
    assert len(seen) == 1


# --- threads -----------------------------------------------------------------------------------


def test_a_hook_runs_in_several_threads_at_once(gate: Gate) -> None:
    seen: list[int] = []

    def hook(_event: Event) -> None:
        seen.append(1)
        if len(seen) == 1:
            in_thread(gate.try_admit)  # another thread's shed is told, though this one's would not be

    gate.subscribe(hook)
    refused(gate)
    assert len(seen) == 2


@pytest.mark.usefixtures("unraisable")
def test_a_storm_with_a_raising_and_re_entering_hook_leaves_exactly_the_limit() -> None:
    seed = int(os.environ.get("TIDEGATE_SEED", random.randrange(2**32)))
    print(f"TIDEGATE_SEED={seed}")
    gate = Gate("db", limit=5, timing=True)
    told: list[str] = []
    asked = ["shed", "limit", "released"]

    def unruly(event: Event) -> None:
        with gate.subscribe(lambda _event: None, ["released"]):
            gate.set_limit(5)
            with gate.admit(priority="sheddable"):
                raise ValueError(event.kind)

    gate.subscribe(unruly, asked)
    gate.subscribe(lambda event: told.append(event.kind), asked)
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def one(number: int) -> int:
        draw, refusals = random.Random(f"{seed} {number}"), 0
        for _ in range(200):
            try:
                match draw.randrange(4):
                    case 0:
                        with gate:
                            pass
                    case 1:
                        with gate.admit(weight=draw.randint(1, 4)):
                            pass
                    case 2:
                        gate.try_admit().release()
                    case _:
                        with gate.admit(), gate.admit():
                            raise TimeoutError
            except Shed:
                refusals += 1
            except (TimeoutError, AttributeError) as error:
                refusals += isinstance(error, AttributeError)  # try_admit() was None
        return refusals

    try:
        refusals = sum(together(*(lambda number=number: one(number) for number in range(8))))
    finally:
        sys.setswitchinterval(switching)
    stats = gate.stats()
    assert shed(stats) >= refusals
    assert told.count("shed") == shed(stats), "each shed was told once, those inside the hook included"
    assert_at_rest(gate)


def test_subscribing_and_unsubscribing_in_many_threads_leaves_nothing_behind(gate: Gate) -> None:
    def come_and_go() -> None:
        for _ in range(300):
            with gate.subscribe(lambda _event: None, ["released", "shed"]):
                refused_or_not = gate.try_admit()
                if refused_or_not is not None:
                    refused_or_not.release()

    together(*[come_and_go] * 6)
    calls: list[Event] = []
    gate.subscribe(calls.append, "released")()
    gate.try_admit().release()
    assert not calls
    assert_at_rest(gate)


# --- memory, forks, exit -----------------------------------------------------------------------


def test_a_gate_whose_hook_knows_it_is_collected() -> None:
    def used() -> weakref.ref[Gate]:
        gate = Gate("db", limit=1)
        log: list[Any] = []
        gate.subscribe(lambda event: log.extend([gate, event]))
        unsubscribe = gate.subscribe(lambda _event: unsubscribe())
        with gate:
            assert gate.try_admit() is None
        assert log[0] is gate
        return weakref.ref(gate)

    gone = used()
    gc.collect()
    assert gone() is None


def test_one_whose_hook_does_not_needs_no_collector() -> None:
    gc.disable()
    try:
        gate = Gate("db", limit=1)
        seen: list[Event] = []
        gate.subscribe(seen.append)
        with gate:
            gate.try_admit()
            gate.close()
        gone = weakref.ref(gate)
        del gate
        assert gone() is None
        assert len(seen) == 3
    finally:
        gc.enable()


def test_a_closed_gate_that_never_drains_is_freed_all_the_same() -> None:
    class Hook:
        def __call__(self, _event: Event) -> None: ...

    hook = Hook()
    gone = weakref.ref(hook)
    gate = Gate("db", limit=1)
    gate.subscribe(hook)
    gate.__enter__()
    gate.close()
    del gate, hook
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_hooks_stay_after_a_fork_even_one_inside_a_hook(gate: Gate) -> None:
    seen: list[str] = []
    answers: list[Any] = []

    def child() -> list[str]:
        gate.set_limit(0)
        gate.try_admit()
        gate.close()
        return seen

    def forking(_event: Event) -> None:
        answers.append(in_child(child))

    gate.subscribe(lambda event: seen.append(event.kind))
    assert in_child(child) == ["limit", "shed", "closed", "drained"]
    assert not seen
    with gate.subscribe(forking, ["limit"]):
        gate.set_limit(2)
    assert answers == [["limit", "limit", "shed", "closed", "drained"]]
    assert seen == ["limit"]


def test_a_hook_at_the_exit_of_the_interpreter() -> None:
    script = """
        import atexit, tidegate
        gate = tidegate.Gate("db", 1)
        gate.subscribe(lambda event: print(event.kind), ["shed", "closed", "drained", "released"])
        permit = gate.try_admit()
        atexit.register(lambda: (gate.try_admit(), gate.close(), permit.release()))
    """
    assert output_of(script).split() == ["shed", "closed", "drained", "released"]
