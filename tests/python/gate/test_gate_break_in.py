"""What somebody found who set out to break the gate."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import types
from collections.abc import Generator

import pytest
import tidegate
from tidegate import Gate


def outcome_of(gate: Gate, error: BaseException) -> str:
    before = gate.stats().released
    with pytest.raises(type(error)), gate:
        raise error
    after = gate.stats().released
    return next(str(outcome) for outcome in after if after[outcome] > before[outcome])


def in_a_process(script: str, seconds: float = 30) -> None:
    """Runs a script that must end well; one that hangs is killed, which fails."""
    code = textwrap.dedent(script)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=seconds)


def test_a_group_that_contains_itself() -> None:
    class Endless(ExceptionGroup[Exception]):
        @property
        def exceptions(self) -> tuple[Endless, ...]:  # type: ignore[override]
            return (self,)

    gate = Gate("x", 1)
    # The group as it really is counts, not what the attribute says.
    assert outcome_of(gate, Endless("endless", [ValueError()])) == "success"
    assert outcome_of(gate, Endless("endless", [TimeoutError()])) == "overload"


def test_a_group_nested_deeper_than_the_stack() -> None:
    in_a_process(
        """
        import tidegate
        gate, error = tidegate.Gate("x", 1), ValueError()
        for _ in range(100_000):
            error = ExceptionGroup("deep", [error])
        try:
            with gate:
                raise error
        except ExceptionGroup:
            pass
        assert gate.in_flight == 0 and gate.stats().released["success"] == 1
        while isinstance(error, ExceptionGroup):  # unnest it before Python frees it
            error = error.exceptions[0]
        """
    )


def test_a_group_of_shared_groups_ends() -> None:
    error: Exception = ValueError()
    for _ in range(60):  # 2**60 paths
        error = ExceptionGroup("shared", [error, error])
    assert outcome_of(Gate("x", 1), error) == "success"


@pytest.mark.parametrize("first_use", ["gate.drain(0)", "gate.guard(print)"])
def test_a_signal_handler_may_do_for_the_first_time_what_it_interrupts(first_use: str) -> None:
    in_a_process(
        f"""
        import os, signal, sys, tidegate
        gate, handled = tidegate.Gate("x", 1), []
        signal.signal(signal.SIGTERM, lambda *_: handled.append({first_use}))
        class Interrupt:
            def find_spec(self, name, path=None, target=None):
                sys.meta_path.remove(self)
                os.kill(os.getpid(), signal.SIGTERM)
        sys.meta_path.insert(0, Interrupt())
        for name in [name for name in sys.modules if name == "inspect"]:
            del sys.modules[name]
        {first_use}
        os.kill(os.getpid(), signal.SIGTERM)
        assert handled
        """
    )


def test_native_code_imports_nothing_of_ours_later() -> None:
    in_a_process(
        """
        import sys, tidegate
        class Refuse:
            def find_spec(self, name, path=None, target=None):
                assert not name.startswith("tidegate"), name
        sys.meta_path.insert(0, Refuse())
        gate = tidegate.Gate("x", 1)
        gate.guard(print)
        permit = gate.try_admit()
        assert gate.stats().in_flight == 1 and gate.try_admit() is None
        try:
            with gate: pass
        except tidegate.Shed as shed:
            assert shed.reason == "limit" and shed.retry_after_header
        try:
            gate.set_limit(-1)
        except tidegate.ConfigError:
            pass
        assert not gate.drain(0)
        """
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # 3.12 warns of forks in threads
@pytest.mark.parametrize("own", ["permit", "block", "child's thread"])
def test_a_fork_inside_a_block_is_not_left_by_the_child(own: str) -> None:
    import threading

    def child() -> None:
        with gate:  # bound anew in this process
            assert gate.in_flight == held + 1

    gate = Gate("x", 2)
    with gate:
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            held = 0
            if own == "permit":
                assert gate.try_admit() is not None
                held = 1
                permit = gate.try_admit()
                assert permit is not None
                permit.release()
            elif own == "block":
                child()
            else:
                thread = threading.Thread(target=child)
                thread.start()
                thread.join()
    if pid == 0:
        # The block that the parent entered has ended here, too.
        ok = gate.stats().unmatched_exits == 0
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert gate.in_flight == 0 and gate.stats().released["success"] == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_childs_permit_survives_the_end_of_its_parents_block() -> None:
    gate = Gate("x", 1)
    with gate:
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            with gate:
                pass  # so bare entries are known to this process
            permit = gate.try_admit()
    if pid == 0:
        os._exit(0 if permit is not None and gate.try_admit() is None else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_asking_again_and_again_whether_it_has_drained_leaves_nothing_behind() -> None:
    class Callback:
        def __call__(self) -> None:
            called.append(self)

    async def ask() -> None:
        for _ in range(3):
            assert not await gate.drain_async(0)

    called: list[Callback] = []
    gate = Gate("x", 1)
    permit = gate.try_admit()
    assert permit is not None
    asyncio.run(ask())
    kept, forgotten = Callback(), Callback()
    references = sys.getrefcount(forgotten)
    gate._on_drained(kept)
    waiting = gate._on_drained(forgotten)
    assert sys.getrefcount(forgotten) == references + 1
    gate._forget_drained(waiting)
    gate._forget_drained(waiting)
    assert sys.getrefcount(forgotten) == references
    permit.release()
    assert called == [kept]


def test_a_generator_based_coroutine_stays_one() -> None:
    gate = Gate("x", 1)

    @gate.guard
    @types.coroutine
    def old_style() -> Generator[None, None, int]:
        assert gate.in_flight == 1
        yield
        return 7

    async def main() -> int:
        return await old_style()  # type: ignore[misc]

    assert asyncio.run(main()) == 7
    assert gate.in_flight == 0


def test_occupancy_of_a_clock_set_back_is_not_the_age_of_the_universe() -> None:
    from tidegate.testing import ManualClock

    clock = ManualClock(10**12)
    gate = Gate("x", 1, timing=True, clock=clock)
    permit = gate.try_admit()
    clock.set(0)
    assert gate.stats().occupancy == 0.0
    assert permit is not None
    permit.release()


def test_an_exit_called_through_the_class_leaves() -> None:
    gate = tidegate.Gate("x", 1)
    tidegate.Gate.__enter__(gate)
    tidegate.Gate.__exit__(gate, None, None, None)
    assert gate.in_flight == 0
