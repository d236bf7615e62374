"""A gate belongs to no event loop (field fault D25)."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest
import trio
import uvloop
from gatekit import admitted, assert_at_rest, shed, together
from tidegate import Gate, Shed

GATE = Gate("made before any loop", limit=1)


async def use(gate: Gate, times: int = 1) -> int:
    """How often it was shed."""
    refused = 0
    for _ in range(times):
        try:
            async with gate:
                await asyncio.sleep(0)
                async with asyncio.timeout(1):
                    pass
        except Shed:
            refused += 1
            await asyncio.sleep(0)
    return refused


def test_d25_one_gate_in_consecutive_loops() -> None:
    for runner in (asyncio.run, asyncio.run, uvloop.run, asyncio.run):
        assert runner(use(GATE)) == 0
    assert_at_rest(GATE)


@pytest.mark.usefixtures("restless")
def test_d25_one_gate_in_loops_of_several_threads_at_once() -> None:
    gate = Gate("db", limit=1)
    runners = [asyncio.run, asyncio.run, uvloop.run]
    refused = together(*[lambda run=run: run(use(gate, times=200)) for run in runners])
    stats = gate.stats()
    assert stats.high_water == 1
    assert admitted(stats) + sum(refused) == 600
    assert shed(stats) == sum(refused)
    assert_at_rest(gate)


def test_d25_asyncio_and_trio_meet_at_one_gate(gate: Gate) -> None:
    async def on_trio() -> None:
        with pytest.raises(Shed):
            async with gate:
                pass

    async def on_asyncio() -> None:
        async with gate:
            await asyncio.to_thread(trio.run, on_trio)

    asyncio.run(on_asyncio())
    assert_at_rest(gate)


def test_d25_a_permit_taken_on_one_loop_is_released_on_another(gate: Gate) -> None:
    async def take() -> object:
        return await gate.admit()

    permit = asyncio.run(take())

    async def leave() -> None:
        async with asyncio.timeout(1):
            permit.release()

    asyncio.run(leave())
    assert_at_rest(gate)


def test_d25_a_loop_that_dies_inside_a_block_leaves_nothing_behind(gate: Gate) -> None:
    async def work() -> None:
        async with gate:
            await asyncio.sleep(60)

    loop = asyncio.new_event_loop()
    task = loop.create_task(work())
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert gate.in_flight == 1
    loop.close()
    task._log_destroy_pending = False  # the fault that this test commits on purpose
    del task
    gc.collect()
    assert_at_rest(gate)


def test_d25_draining_on_two_loops_at_once(gate: Gate) -> None:
    permit = gate.try_admit()
    both = threading.Barrier(3)

    async def drain() -> bool:
        draining = asyncio.create_task(gate.drain_async(timeout=30))
        await asyncio.sleep(0)
        await asyncio.to_thread(both.wait)
        return await draining

    def release() -> None:
        both.wait()
        permit.release()

    answers = together(lambda: asyncio.run(drain()), lambda: asyncio.run(drain()), release)
    assert answers[:2] == [True, True]
