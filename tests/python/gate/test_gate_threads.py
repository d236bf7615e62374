"""Threads from Python: never above the limit, nothing lost (field faults D05, D26)."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from gatekit import PATIENCE, admitted, assert_at_rest, in_thread, shed, together, until
from storm import Inside
from tidegate import Gate, Priority, Shed

pytestmark = pytest.mark.usefixtures("restless")


def bare(gate: Gate, priority: Priority) -> Gate:
    return gate


def admission(gate: Gate, priority: Priority) -> Any:
    return gate.admit(priority=priority)


@pytest.mark.parametrize("block", [bare, admission])
@pytest.mark.parametrize("limit", [1, 5])
def test_d05_the_limit_is_never_exceeded(limit: int, block: Callable[..., Any]) -> None:
    gate, inside = Gate("db", limit), Inside()
    priorities = list(Priority)

    def use(number: int) -> int:
        refused = 0
        for n in range(300):
            try:
                with block(gate, priorities[(number + n) % 4]), inside:
                    pass
            except Shed:
                refused += 1
        return refused

    refused = sum(together(*(partial(use, number) for number in range(16))))
    assert inside.most <= limit
    assert gate.stats().high_water <= limit
    assert shed(gate.stats()) == refused
    assert admitted(gate.stats()) == 16 * 300 - refused
    assert_at_rest(gate)


def test_d05_also_while_the_limit_moves() -> None:
    gate, inside = Gate("db", limit=10), Inside()
    done = threading.Event()

    def use() -> None:
        while not done.is_set():
            try:
                with gate, inside:
                    pass
            except Shed:
                pass

    def move() -> None:
        for n in range(1_000):
            gate.set_limit(1 + n % 10)
        done.set()

    together(move, *[use] * 8)
    assert inside.most <= 10
    gate.set_limit(10)
    assert_at_rest(gate)


def test_d05_asyncio_tasks_share_a_gate_with_threads() -> None:
    gate, inside = Gate("db", limit=3), Inside()

    async def task() -> int:
        refused = 0
        for _ in range(50):
            try:
                async with gate:
                    with inside:
                        await asyncio.sleep(0)
            except Shed:
                refused += 1
                await asyncio.sleep(0)
        return refused

    async def tasks() -> int:
        return sum(await asyncio.gather(*[task() for _ in range(20)]))

    def thread() -> int:
        refused = 0
        for _ in range(1_000):
            try:
                with gate.admit(priority="sheddable"), inside:
                    pass
            except Shed:
                refused += 1
        return refused

    refused = together(lambda: asyncio.run(tasks()), lambda: asyncio.run(tasks()), thread, thread)
    assert inside.most <= 3
    assert admitted(gate.stats()) + sum(refused) == 4_000
    assert shed(gate.stats()) == sum(refused)
    assert_at_rest(gate)


def test_d05_thousands_of_tasks_that_want_in_at_once() -> None:
    gate, inside = Gate("db", limit=10), Inside()

    async def ask(everybody_asked: asyncio.Event) -> bool:
        try:
            async with gate:
                with inside:
                    await everybody_asked.wait()
        except Shed:
            return False
        return True

    async def main() -> list[bool]:
        everybody_asked = asyncio.Event()
        asking = [asyncio.create_task(ask(everybody_asked)) for _ in range(2_000)]
        await asyncio.sleep(0)
        everybody_asked.set()
        return await asyncio.gather(*asking)

    assert sum(asyncio.run(main())) == inside.most == 10
    assert_at_rest(gate)


def test_d26_a_blocked_drain_keeps_nothing_from_the_others() -> None:
    """A blocking call that kept the object borrowed would make all of these fail or hang."""
    gate = Gate("db", limit=5)
    first, second = gate.try_admit(), gate.try_admit()
    gate.__enter__()
    draining = threading.Thread(target=gate.drain)
    draining.start()
    until(lambda: gate.closed)

    def everything() -> None:
        gate.set_limit(7)
        gate.set_thresholds({"sheddable": 0.5})
        gate.set_enforce(True)
        assert "closed" in repr(gate)
        assert gate.stats().in_flight == gate.in_flight == 3
        assert gate.limit_history
        assert gate.retry_after() == float("inf")
        assert gate.try_admit() is None
        with pytest.raises(Shed), gate:
            pass
        assert gate.drain(timeout=0) is False
        first.release()
        second.__exit__(None, None, None)
        gate.__exit__(None, None, None)

    in_thread(everything)
    draining.join(PATIENCE)
    assert not draining.is_alive()
    assert gate.in_flight == 0


def test_d26_permits_are_released_and_collected_where_they_were_not_made() -> None:
    gate = Gate("db", limit=8)
    permits = [gate.try_admit() for _ in range(8)]
    in_thread(lambda: [permit.release() for permit in permits[:4]])
    asyncio.run(release_in_executor(permits[4]))
    with pytest.warns(ResourceWarning):
        in_thread(permits.clear)
        gc.collect()
    assert gate.stats().collected == 3
    assert_at_rest(gate)


async def release_in_executor(permit: Any) -> None:
    await asyncio.get_running_loop().run_in_executor(None, permit.release)


def test_more_threads_than_counters_of_their_own() -> None:
    """Counters are kept per thread, and shared where there are many threads: none may be lost."""
    gate = Gate("db", limit=1_000)

    def use() -> None:
        for _ in range(50):
            with gate:
                pass

    for _ in range(3):  # the counters of threads that ended are used again
        together(*[use] * 40)
    assert admitted(gate.stats()) == 3 * 40 * 50
    assert_at_rest(gate)


def test_thread_locals_and_gates_end_in_any_order() -> None:
    """A thread's permits die with it."""
    gate = Gate("db", limit=1)
    local = threading.local()

    def keep() -> None:
        local.permit = gate.try_admit()

    with pytest.warns(ResourceWarning):
        in_thread(keep)
        gc.collect()
    assert_at_rest(gate)
