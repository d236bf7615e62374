"""What becomes of gates and permits that are copied, dropped, collected, or outlive the interpreter."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import inspect
import pickle
import pydoc
import sys
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import pytest
import tidegate
from gatekit import assert_at_rest, in_thread, python, released
from tidegate import Gate, Permit, Shed

# --- copies ------------------------------------------------------------------------------------

COPIES = [copy.copy, copy.deepcopy, *(partial(pickle.dumps, protocol=n) for n in range(6))]


@pytest.mark.parametrize("duplicate", COPIES)
def test_gates_and_permits_refuse_to_be_copied(gate: Gate, duplicate: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"a Gate cannot be pickled or copied: .* make one in each process"):
        duplicate(gate)
    with gate.try_admit() as permit:
        with pytest.raises(TypeError, match="a Permit cannot be pickled or copied: it is released exactly"):
            duplicate(permit)
        assert gate.in_flight == 1
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
    gate: Gate, action: Literal["always", "error"], monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", lambda hook: unraisable.append(hook.exc_type))

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter(action)
        try:
            raise_over(gate)
        except KeyError as error:
            assert error.args == ("mine",)
            assert error.__context__ is None
        else:
            pytest.fail("the exception was lost")
    assert gate.stats().collected == 1
    assert (len(warned), unraisable) == ((1, []) if action == "always" else (0, [ResourceWarning]))
    assert_at_rest(gate)


def raise_over(gate: Gate) -> None:
    """Raises while a permit that only the evaluation stack refers to is dropped."""
    compare(gate.try_admit(), raising())


def compare(one: object, other: object) -> None:
    pytest.fail("raising() raised")


def raising() -> None:
    raise KeyError("mine")


def test_a_permit_may_be_collected_in_any_thread(gate: Gate) -> None:
    permits = [gate.try_admit()]
    with pytest.warns(ResourceWarning):
        in_thread(permits.clear)
    assert gate.stats().collected == 1
    assert_at_rest(gate)


def test_warnings_are_attributed_to_whoever_dropped_it(gate: Gate) -> None:
    permit = gate.try_admit()
    with pytest.warns(ResourceWarning) as warned:
        permit = None
    assert permit is None
    assert [warning.filename for warning in warned] == [__file__]


# --- gates nobody holds ------------------------------------------------------------------------


def test_a_dropped_gate_is_freed_at_once(gate: Gate) -> None:
    def used() -> Gate:
        gate = Gate("db", limit=1, outcomes={KeyError: "ignore"})
        with gate:
            try:
                with gate:
                    pass
            except Shed as refused:
                assert refused.retry_after is None
                assert str(refused)
        with gate.admit(), pytest.raises(Shed), gate.admit():
            pass
        gate.guard(lambda: None)()
        gate.try_admit().release()
        list(gate.guard(lambda: (yield))())
        asyncio.run(using(gate))
        gate.drain(timeout=0)
        gate.stats()
        return gate

    gc.collect()
    gc.disable()  # reference counts alone
    try:
        gate = used()
        gone = weakref.ref(gate)
        del gate
        assert gone() is None
    finally:
        gc.enable()


async def using(gate: Gate) -> None:
    async with gate:
        pass
    async with gate.admit():
        pass
    (await gate.admit()).release()


def test_a_permit_keeps_what_it_needs_not_the_gate() -> None:
    gate = Gate("db", limit=1)
    gone = weakref.ref(gate)
    permit = gate.try_admit()
    del gate
    assert gone() is None
    assert permit.release() is True


def test_a_gate_in_a_cycle_is_collected() -> None:
    class Busy(Exception):  # noqa: N818
        gate: Gate

    Busy.gate = Gate("db", limit=1, outcomes={Busy: "overload"})
    gone = weakref.ref(Busy.gate)
    del Busy
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_the_collector_may_look_at_gates_in_use(gate: Gate) -> None:
    with gate, contextlib.suppress(Shed), gate:
        pass
    with gate:
        gc.collect()
        assert gc.is_tracked(gate)
        assert gc.get_referents(gate)
        assert gc.get_referrers(gate)
    assert_at_rest(gate)


def test_many_gates_come_and_go() -> None:
    for n in range(3_000):
        gate = Gate(f"db {n}", limit=1)
        with gate:
            pass


# --- the end of the interpreter ----------------------------------------------------------------


@pytest.mark.parametrize("where", ["a global", "a cycle", "a thread's stack", "an atexit hook", "a module"])
def test_interpreter_exit_with_permits_out(where: str) -> None:
    run = python(f"""
        import atexit, sys, threading, types
        from tidegate import Gate
        gate = Gate("db", limit=9)
        where = {where!r}
        permits = [gate.try_admit(), gate.try_admit()]
        if where == "a cycle":
            permits.append(permits)
            del permits
        elif where == "a thread's stack":
            inside = threading.Event()
            def work(permit):
                inside.set()
                threading.Event().wait()
            threading.Thread(target=work, args=(permits,), daemon=True).start()
            del permits
            inside.wait()
        elif where == "an atexit hook":
            atexit.register(lambda permits=permits: print(len(permits)))
            del permits
        elif where == "a module":
            sys.modules["later"] = types.ModuleType("later")
            sys.modules["later"].permits = permits
            del permits
        gate.__enter__()
        print("end")
    """)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("end")
    assert "Traceback" not in run.stderr
    assert "panicked" not in run.stderr


def test_interpreter_exit_while_threads_are_in_and_out() -> None:
    run = python("""
        import threading
        from tidegate import Gate, Shed
        gate = Gate("db", limit=2)
        started = threading.Barrier(5)
        def use():
            started.wait()
            while True:
                try:
                    with gate, gate.admit():
                        pass
                except Shed:
                    pass
        for _ in range(4):
            threading.Thread(target=use, daemon=True).start()
        started.wait()
    """)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_interpreter_exit_with_a_drain_going_on() -> None:
    run = python("""
        import threading
        from tidegate import Gate
        gate = Gate("db", limit=2)
        gate.__enter__()
        threading.Thread(target=gate.drain, daemon=True).start()
        while not gate.closed:
            pass
    """)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


# --- help --------------------------------------------------------------------------------------


def test_help_tells_about_everything_public() -> None:
    text = pydoc.plain(pydoc.render_doc(Gate))
    for name in ("admit", "try_admit", "guard", "set_limit", "drain_async", "in_flight", "__enter__"):
        assert name in text
    assert "thresholds=None, rate=None, burst=None, default_priority='critical'" in text
    for public in (getattr(tidegate, name) for name in tidegate.__all__):
        assert inspect.getdoc(public), public
        assert pydoc.render_doc(public)
        for name, member in getattr(public, "__dict__", {}).items():  # a native function has none
            if not name.startswith("_") and public.__module__ == "tidegate":
                assert inspect.getdoc(member), f"{public.__name__}.{name} has no docstring"


def test_signatures_can_be_read() -> None:
    assert str(inspect.signature(Gate.admit)) == "(self, /, *, priority=None, weight=1)"
    assert str(inspect.signature(Gate.drain)) == "(self, /, timeout=None)"
    assert str(inspect.signature(Permit.release)) == "(self, /, outcome='success')"
    assert list(inspect.signature(Gate).parameters)[:2] == ["name", "limit"]
