"""The end of a gate: close, drain, drain_async."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest
from gatekit import PATIENCE, assert_at_rest, in_thread, released, shed, together, until
from tidegate import Gate, Priority, Shed

Main = Callable[[], Coroutine[Any, Any, Any]]


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Callable[[Main], Any]:
    return lambda main: anyio.run(main, backend=request.param)


# --- close -------------------------------------------------------------------------------------


def test_a_closed_gate_admits_nobody_and_lets_out_who_is_inside(gate: Gate) -> None:
    with gate:
        assert gate.closed is False
        gate.close()
        gate.close()
        assert gate.closed is True
    assert gate.try_admit(priority=Priority.CRITICAL_PLUS) is None
    with pytest.raises(Shed, match=r"^gate 'db' is closed$") as refused, gate:
        pass
    assert refused.value.reason == "closed"
    assert shed(gate.stats(), "closed") == 2
    assert released(gate.stats()) == {"success": 1}
    assert repr(gate) == "<Gate 'db': 0 of 1 in flight, closed>"


def test_no_setting_reopens_a_closed_gate(gate: Gate) -> None:
    gate.close()
    gate.set_limit(10)
    gate.set_enforce(False)
    gate.set_thresholds({})
    assert gate.try_admit() is None
    assert gate.retry_after() == float("inf")


# --- drain -------------------------------------------------------------------------------------


def test_drain_closes_and_says_whether_the_gate_is_empty(gate: Gate) -> None:
    permit = gate.try_admit()
    assert gate.drain(timeout=0) is False
    assert gate.drain(timeout=0.001) is False
    assert gate.closed
    permit.release()
    assert gate.drain() is True
    assert gate.drain(timeout=0) is True


@pytest.mark.parametrize("leave", ["release", "block", "over"])
def test_drain_wakes_when_the_last_one_leaves_in_another_thread(gate: Gate, leave: str) -> None:
    if leave == "over":
        gate.set_enforce(False)
        gate.set_limit(0)
    permit = gate.try_admit()

    def release() -> None:
        until(lambda: gate.closed)  # the drain has begun
        permit.release() if leave != "block" else permit.__exit__(None, None, None)

    assert together(lambda: gate.drain(timeout=PATIENCE), release)[0] is True
    assert (gate.in_flight, gate.stats().over_in_flight) == (0, 0)


def test_any_number_of_threads_may_drain(gate: Gate) -> None:
    permit = gate.try_admit()
    waiting = [lambda: gate.drain(PATIENCE)] * 4
    answers = together(*waiting, lambda: until(lambda: gate.closed) or permit.release())
    assert answers == [True, True, True, True, True]


def test_drain_leaves_the_interpreter_to_others(gate: Gate) -> None:
    """The permit's holder needs the interpreter lock that a drain in C would sit on."""
    permit = gate.try_admit()

    def work() -> None:
        until(lambda: gate.closed)
        sum(range(10_000))
        permit.release()

    worker = threading.Thread(target=work)
    worker.start()
    assert gate.drain(PATIENCE) is True
    worker.join()


def test_d27_ctrl_c_ends_a_drain(gate: Gate) -> None:
    permit = gate.try_admit()

    def press() -> None:
        until(lambda: gate.closed)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's is ignored
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            gate.drain(timeout=PATIENCE)
    finally:
        signal.signal(signal.SIGINT, before)
        thread.join()
        permit.release()
    assert gate.drain(timeout=0) is True


def test_d27_a_signal_whose_handler_returns_does_not_end_or_restart_a_drain(gate: Gate) -> None:
    permit = gate.try_admit()
    handled = []
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
    try:

        def disturb() -> None:
            until(lambda: gate.closed)
            for n in range(1, 4):
                os.kill(os.getpid(), signal.SIGUSR1)
                until(lambda n=n: len(handled) == n)  # handled inside the drain
            permit.release()

        thread = threading.Thread(target=disturb)
        thread.start()
        assert gate.drain(timeout=PATIENCE) is True
        thread.join()
        assert len(handled) == 3
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_drain_refuses_to_block_a_running_event_loop(run: Callable[[Main], Any]) -> None:
    gate = Gate("db", limit=1)

    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"drain_async\(\)"):
            gate.drain(timeout=0)

    run(main)
    assert not gate.closed, "a refused call changes nothing"
    assert gate.drain(timeout=0) is True


def test_drain_in_a_thread_beside_a_running_loop(run: Callable[[Main], Any]) -> None:
    gate = Gate("db", limit=1)

    async def main() -> bool:
        return await anyio.to_thread.run_sync(gate.drain)

    assert run(main) is True


# --- drain_async -------------------------------------------------------------------------------


def test_drain_async_waits_while_the_loop_goes_on(run: Callable[[Main], Any]) -> None:
    gate = Gate("db", limit=1)

    async def main() -> None:
        permit = gate.try_admit()

        async def release() -> None:
            while not gate.closed:
                await anyio.sleep(0)
            permit.release()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(release)
            assert await gate.drain_async() is True

    run(main)


def test_drain_async_wakes_when_the_last_one_leaves_in_another_thread(run: Callable[[Main], Any]) -> None:
    gate = Gate("db", limit=1)
    permit = gate.try_admit()

    def release() -> None:
        until(lambda: gate.closed)
        permit.release()

    async def main() -> bool:
        thread = threading.Thread(target=release)
        thread.start()
        answer = await gate.drain_async(timeout=PATIENCE)
        thread.join()
        return answer

    assert run(main) is True


def test_drain_async_of_an_empty_gate_is_true_also_without_any_time(run: Callable[[Main], Any]) -> None:
    async def main() -> None:
        for timeout in (None, 0, 0.001, float("inf")):
            for _ in range(10):
                assert await Gate("db", limit=1).drain_async(timeout) is True

    run(main)


def test_drain_async_times_out_and_leaves_the_gate_closed(run: Callable[[Main], Any]) -> None:
    gate = Gate("db", limit=1)

    async def main() -> None:
        with gate:
            assert await gate.drain_async(timeout=0) is False
            assert await gate.drain_async(timeout=0.001) is False
            assert gate.closed
        assert await gate.drain_async(timeout=0) is True

    run(main)


def test_drain_async_is_cancelled_like_any_wait(run: Callable[[Main], Any]) -> None:
    gate = Gate("db", limit=1)

    async def main() -> None:
        permit = gate.try_admit()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(gate.drain_async)
                while not gate.closed:
                    await anyio.sleep(0)
                scope.cancel()
        assert scope.cancelled_caught
        permit.release()  # wakes nobody, and does not complain
        assert await gate.drain_async() is True

    run(main)


def test_drain_async_does_not_swallow_a_cancellation_at_the_moment_of_success() -> None:
    gate = Gate("db", limit=1)

    async def main() -> None:
        permit = gate.try_admit()
        draining = asyncio.create_task(gate.drain_async(PATIENCE))
        while not gate.closed:
            await asyncio.sleep(0)
        permit.release()
        await asyncio.sleep(0)  # the waiter was told, and has not run yet
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        assert draining.cancelled()

    asyncio.run(main())


def test_d25_a_loop_that_ended_with_a_drain_pending_is_no_error_for_the_releaser() -> None:
    gate = Gate("db", limit=1)
    permit = gate.try_admit()

    async def give_up() -> None:
        draining = asyncio.create_task(gate.drain_async())
        while not gate.closed:
            await asyncio.sleep(0)
        draining.cancel()

    asyncio.run(give_up())
    permit.release()
    assert gate.drain(timeout=0) is True


def test_drain_async_needs_a_loop(gate: Gate) -> None:
    with pytest.raises(RuntimeError, match="needs a running asyncio or trio event loop"):
        gate.drain_async().send(None)


def test_draining_happens_when_awaited_not_when_called(gate: Gate) -> None:
    draining = gate.drain_async()
    assert not gate.closed
    draining.close()


def test_a_drain_is_over_before_its_timeout(gate: Gate) -> None:
    """Loose on purpose: 30 s of patience are not used up by a gate that is empty."""
    start = time.perf_counter()
    assert in_thread(lambda: gate.drain(timeout=PATIENCE)) is True
    assert time.perf_counter() - start < PATIENCE / 3


def test_at_rest_after_a_storm_that_a_drain_ends(restless: None) -> None:
    gate = Gate("db", limit=4)

    def use() -> None:
        while True:
            try:
                with gate.admit(priority="sheddable"):
                    pass
            except Shed as refused:
                if refused.reason == "closed":
                    return

    def drain() -> bool:
        until(lambda: sum(gate.stats().admitted.values()) > 500)
        return gate.drain(timeout=PATIENCE)

    assert together(drain, *[use] * 6)[0] is True
    assert_at_rest(gate)
