"""Cancellations, timeouts and interrupts at the very moment of a checkout or return (field fault D13).

The connections are reset by a hook that asks the server nothing, so that a round is the loop's own work.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is not installed", exc_type=ImportError)

from gatekit import admitted, assert_at_rest, released  # noqa: E402
from tidegate import Gate, Shed  # noqa: E402
from tidegate.asyncpg import GatedPool, create_pool  # noqa: E402

leak = pytest.mark.leak
ROUNDS = 300
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    if request.param == "uvloop":
        uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed", exc_type=ImportError)
        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    else:
        runner = asyncio.Runner()
    with runner:
        yield runner.run


async def nothing(connection: Any) -> None:
    pass


async def warm_pool(gate: Gate, dsn: str, size: int) -> GatedPool:
    return await create_pool(gate, dsn, min_size=size, max_size=size, reset=nothing)


def assert_whole(gate: Gate, pool: GatedPool) -> None:
    assert gate.in_flight == 0
    assert pool._queue.qsize() == pool.get_max_size(), "the pool lost a connection"


@pytest.mark.parametrize("way", ["wait_for", "timeout="])
def test_d13_a_timeout_at_the_tick_of_the_grant(run: Run, gate: Gate, dsn: str, way: str) -> None:
    """The holder gives back within 50 us of the moment at which the waiter's patience ends."""
    counts = {"got": 0, "late": 0}

    async def main() -> None:
        loop = asyncio.get_running_loop()
        patience = (
            200e-6 if isinstance(loop, asyncio.BaseEventLoop) else 2e-3
        )  # uvloop counts in milliseconds
        pool = await warm_pool(gate, dsn, 1)

        async def waiter() -> None:
            try:
                if way == "wait_for":
                    connection = await asyncio.wait_for(pool.acquire(), patience)
                else:
                    connection = await pool.acquire(timeout=patience)
            except TimeoutError:
                counts["late"] += 1
            else:
                counts["got"] += 1
                assert gate.in_flight >= 1
                await pool.release(connection)

        for n in range(ROUNDS):
            held = await pool.acquire()
            waiting = asyncio.create_task(waiter())
            await asyncio.sleep(0)
            due = loop.time() + patience - 50e-6 + (n % 101) * 1e-6
            while loop.time() < due:
                await asyncio.sleep(0)
            await pool.release(held)
            await waiting
            assert_whole(gate, pool)
        await pool.close()

    run(main())
    assert sum(counts.values()) == ROUNDS
    assert_at_rest(gate)


@leak("asyncpg", "cancel-in")
def test_d13_a_cancellation_in_the_tick_of_the_grant(run: Run, gate: Gate, dsn: str) -> None:
    async def main() -> None:
        pool = await warm_pool(gate, dsn, 1)
        got: list[Any] = []

        async def waiter() -> None:
            got.append(await pool.acquire())

        for n in range(ROUNDS):
            held = await pool.acquire()
            waiting = asyncio.create_task(waiter())
            await asyncio.sleep(0)
            returning = asyncio.create_task(pool.release(held))
            for _ in range(n % 5):  # before, in and after the turn that hands the connection over
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, returning, return_exceptions=True)
            assert waiting.cancelled() or len(got) == 1, "cancelled, or it has exactly one connection"
            while got:
                assert not waiting.cancelled()
                await pool.release(got.pop())
            assert_whole(gate, pool)
        await pool.close()

    run(main())
    assert released(gate.stats()).keys() == {"success", "ignore"}
    assert_at_rest(gate)


def test_many_tasks_that_are_cancelled_anywhere(run: Run, dsn: str) -> None:
    gate, moments = Gate("db", limit=6), random.Random(13)
    most = 0

    async def main() -> None:
        nonlocal most
        pool = await create_pool(gate, dsn, min_size=0, max_size=4)

        async def work() -> None:
            nonlocal most
            try:
                async with pool.acquire(timeout=moments.choice([None, 0.002])) as connection:
                    most = max(most, gate.in_flight)
                    await connection.execute("SELECT 1")
                    if moments.random() < 0.1:
                        connection.terminate()
            except (Shed, TimeoutError, asyncpg.InterfaceError, asyncpg.PostgresError):
                pass

        for _ in range(60):
            tasks = [asyncio.create_task(work()) for _ in range(10)]
            for task in moments.sample(tasks, 5):
                for _ in range(moments.randrange(4)):
                    await asyncio.sleep(0)
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await pool.close()  # waits for the connections that a shielded release still resets

    run(main())
    assert 4 <= most <= 6
    assert gate.stats().high_water == 6
    assert admitted(gate.stats()) > 100
    assert_at_rest(gate)


@leak("asyncpg", "keyboard-interrupt")
def test_interrupts_around_checkout_and_return(dsn: str) -> None:
    """Hundreds of real signals. asyncpg itself loses connections at such moments, the gate no permit."""
    seed = os.environ.get("TIDEGATE_SEED", str(random.randrange(2**32)))
    print(f"TIDEGATE_SEED={seed}")
    script = Path(__file__).with_name("asyncpg_interrupts.py")
    storm = subprocess.run([sys.executable, script, dsn, seed], capture_output=True, text=True, check=False)
    assert storm.returncode == 0, storm.stderr
    told = json.loads(storm.stdout)
    assert told["interrupted"] >= 100, told
    assert (told["in_flight"], told["whole"]) == (0, True), told
