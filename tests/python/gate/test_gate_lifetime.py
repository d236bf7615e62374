"""What becomes of gates and permits that are copied, dropped, collected, or outlive the interpreter."""

from __future__ import annotations

import copy
import gc
import pickle
import pydoc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from gatekit import admitted, assert_at_rest, in_thread, output_of, python, released
from tidegate import Gate, Permit, Shed

# --- copies ------------------------------------------------------------------------------------

COPIES = [copy.copy, copy.deepcopy, *(lambda it, p=p: pickle.dumps(it, p) for p in range(6))]


@pytest.mark.parametrize("duplicate", COPIES)
def test_gates_and_permits_refuse_to_be_copied(gate: Gate, duplicate: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="a Gate cannot be pickled or copied: .* make one in each process"):
        duplicate(gate)
    with gate.try_admit() as permit:
        with pytest.raises(
            TypeError, match="a Permit cannot be pickled or copied: it is released exactly once"
        ):
            duplicate(permit)
        with pytest.raises(TypeError, match="cannot be pickled"):
            duplicate({"nested": [permit]})
        assert gate.in_flight == 1
    with pytest.raises(TypeError, match="cannot pickle"):
        duplicate(gate.admit())
    assert_at_rest(gate)


def test_there_are_no_subclasses_and_no_new_attributes(gate: Gate) -> None:
    for final in (Gate, Permit):
        with pytest.raises(TypeError):
            type("Mine", (final,), {})
    with pytest.raises(AttributeError):
        gate.mine = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Permit()


def test_two_gates_of_one_name_are_two_gates_as_documented() -> None:
    """Docs: names are labels, not keys. A second gate of the same name is another gate."""
    one, two = Gate("db", limit=1), Gate("db", limit=1)
    with one, two:
        assert (one.in_flight, two.in_flight) == (1, 1)
    assert one != two
    assert len({one, two, one}) == 2


# --- permits nobody released -------------------------------------------------------------------


def test_a_collected_permit_is_released_counted_and_warned_about(gate: Gate) -> None:
    permit = gate.try_admit(weight=1)
    with pytest.warns(ResourceWarning) as warned:
        del permit
    assert [str(warning.message) for warning in warned] == [
        "a permit of gate 'db' was collected without release; use it in a with block, or call release()"
    ]
    stats = gate.stats()
    assert (stats.in_flight, stats.collected, released(stats)) == (0, 1, {"ignore": 1})
    assert_at_rest(gate)


def test_one_that_was_released_is_not(gate: Gate) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gate.try_admit().release()
        with gate.admit() as permit:
            pass
        del permit
        with gate.try_admit():
            pass
    assert gate.stats().collected == 0


def test_one_in_a_cycle_waits_for_the_collector(gate: Gate) -> None:
    holder: dict[str, object] = {"permit": gate.try_admit()}
    holder["itself"] = holder
    del holder
    assert gate.in_flight == 1
    with pytest.warns(ResourceWarning):
        gc.collect()
    assert_at_rest(gate)


@pytest.mark.parametrize("action", ["always", "error"])
def test_collection_does_not_disturb_an_exception_on_its_way(
    gate: Gate, action: Any, monkeypatch: Any
) -> None:
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", lambda hook: unraisable.append(hook.exc_type))

    def work() -> None:
        permit = gate.try_admit()
        assert permit is not None
        raise KeyError("mine")

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter(action)
        with pytest.raises(KeyError, match="mine") as raised:
            work()
        raised.value.__traceback__ = raised.tb = None if False else raised.value.__traceback__
        error = raised.value
        error.__traceback__ = None
        del raised
        gc.collect()
    assert error.args == ("mine",)
    assert gate.stats().collected == 1
    assert (len(warned), unraisable) == ((1, []) if action == "always" else (0, [ResourceWarning]))
    assert_at_rest(gate)
