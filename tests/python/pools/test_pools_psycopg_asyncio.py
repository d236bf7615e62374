"""tidegate.psycopg's asyncio pools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import psycopg
import pytest
from gatekit import PATIENCE, admitted, assert_at_rest, shed
from poolkit import Stop, assert_counted, cancelled_at, collect, interrupted_at, turns_until
from psycopg_pool import (
    AsyncConnectionPool,
    AsyncNullConnectionPool,
    PoolClosed,
    PoolTimeout,
    TooManyRequests,
)
from tidegate import Gate, Shed
from tidegate._held import marked
from tidegate._native import Hold
from tidegate.demo.postgres_server import PostgresServer
from tidegate.psycopg import GatedAsyncConnectionPool, GatedAsyncNullConnectionPool

HOOK = "psycopg-async-pool"
APool = GatedAsyncConnectionPool[Any]


@pytest.fixture(params=[GatedAsyncConnectionPool, GatedAsyncNullConnectionPool])
def pools(request: pytest.FixtureRequest) -> type[APool]:
    """Each pool class."""
    pools: type[APool] = request.param
    return pools


def run(
    pools: type[APool],
    gate: Gate,
    dsn: str,
    test: Callable[[APool], Coroutine[Any, Any, None]],
    **options: Any,
) -> None:
    """The test with a pool of one, or as the options say, within its patience."""

    async def main() -> None:
        size = {"min_size": 0 if issubclass(pools, AsyncNullConnectionPool) else 1, "max_size": 1}
        async with asyncio.timeout(PATIENCE), pools(gate, dsn, open=False, **{**size, **options}) as pool:
            await test(pool)

    asyncio.run(main())


async def query(pool: APool) -> None:
    async with pool.connection() as connection:
        cursor = await connection.execute("select 1")
        assert await cursor.fetchone() == (1,)


# --- what it does ----------------------------------------------------------------------------------


def test_a_permit_is_held_from_checkout_to_return(pools: type[APool], gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        assert isinstance(pool, AsyncConnectionPool)
        async with pool.connection():
            assert gate.in_flight == 1
        assert gate.in_flight == 0
        connection = await pool.getconn()
        assert gate.in_flight == 1
        await pool.putconn(connection)
        assert gate.in_flight == 0
        await query(pool)

    run(pools, gate, dsn, test)
    assert_counted(gate, success=3)


def test_what_does_not_fit_is_shed_before_the_pool_hears_of_it(
    pools: type[APool], gate: Gate, dsn: str
) -> None:
    async def test(pool: APool) -> None:
        permits = [gate.try_admit() for _ in range(gate.limit)]
        for way in (pool.getconn, lambda: query(pool)):
            with pytest.raises(Shed):
                await way()
        assert pool.get_stats().get("requests_num", 0) == 0
        for permit in permits:
            permit.release()

    run(pools, gate, dsn, test)
    assert shed(gate.stats()) == 2
    assert_at_rest(gate)


def test_a_closed_connection_is_returned_where_the_pool_has_it_so(gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        await (await pool.getconn()).close()
        assert gate.in_flight == 0
        assert pool.get_stats()["pool_available"] == 1

    run(GatedAsyncConnectionPool, gate, dsn, test, close_returns=True)
    assert_counted(gate, success=1)


def test_only_a_gate_will_do(pools: type[APool], dsn: str) -> None:
    with pytest.raises(TypeError, match=r"gate must be a Gate, got 'postgresql://.*' \(str\)"):
        pools(dsn)


# --- the leak matrix -------------------------------------------------------------------------------


@pytest.mark.leak(HOOK, "exception")
def test_an_exception_in_the_block(pools: type[APool], gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        with pytest.raises(psycopg.errors.SyntaxError):
            async with pool.connection() as connection:
                await connection.execute("nonsense")
        assert gate.in_flight == 0
        with pytest.raises(TimeoutError):
            async with pool.connection():
                raise TimeoutError
        assert gate.in_flight == 0

    run(pools, gate, dsn, test)
    assert_counted(gate, success=1, overload=1)


@pytest.mark.leak(HOOK, "exception")
def test_a_connection_of_somebody_else_s(pools: type[APool], gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as foreign:
            connection = await pool.getconn()
            with pytest.raises(ValueError, match="doesn't come from any pool"):
                await pool.putconn(foreign)
            assert gate.in_flight == 1
            await pool.putconn(connection)

    run(pools, gate, dsn, test)
    assert_counted(gate, success=1)


@pytest.mark.leak(HOOK, "base-exception")
def test_a_base_exception_in_the_block(pools: type[APool], gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        for error in (Stop, GeneratorExit, asyncio.CancelledError):
            with pytest.raises(error):
                async with pool.connection():
                    raise error
            assert gate.in_flight == 0

    run(pools, gate, dsn, test)
    assert admitted(gate.stats()) == 3
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "cancel-before")
def test_a_task_that_is_cancelled_before_it_starts(pools: type[APool], gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        assert await cancelled_at(0, query(pool))

    run(pools, gate, dsn, test)
    assert admitted(gate.stats()) == 0
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "cancel-in")
def test_a_checkout_that_is_cancelled_while_it_waits(pools: type[APool], gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        async with pool.connection():
            waiting = asyncio.create_task(query(pool))
            await turns_until(lambda: pool.get_stats().get("requests_waiting", 0) == 1)
            assert gate.in_flight == 2
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert gate.in_flight == 1

    run(pools, gate, dsn, test)
    assert_counted(gate, success=1, ignore=1)


@pytest.mark.leak(HOOK, "cancel-in")
@pytest.mark.leak(HOOK, "cancel-after")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # what a pool drops it does not close
def test_a_cancellation_at_any_turn_of_the_loop(pools: type[APool], gate: Gate, dsn: str) -> None:
    """From before the checkout to after the return; D13 as far as without waiting."""

    async def test(pool: APool) -> None:
        await query(pool)
        cancelled = 0
        for tick in range(1, 60):
            cancelled += await cancelled_at(tick, query(pool))
            assert gate.in_flight == 0
        assert cancelled

    run(pools, gate, dsn, test, max_size=80)
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "cancel-after")
def test_scopes_that_are_cancelled_around_the_block(pools: type[APool], gate: Gate, dsn: str) -> None:
    """D14: the permit is back on the line after the block."""

    async def test(pool: APool) -> None:
        async def hold() -> None:
            async with pool.connection() as connection:
                await connection.execute("select 1")
                await asyncio.Event().wait()

        async def fail() -> None:
            await turns_until(lambda: gate.in_flight == 1)
            raise ValueError("a sibling")

        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(hold())
                group.create_task(fail())
        assert gate.in_flight == 0

        with anyio.CancelScope() as outer, anyio.CancelScope() as inner:
            async with pool.connection() as connection:
                await connection.execute("select 1")
                inner.cancel()
                outer.cancel()
                await anyio.sleep_forever()
        assert gate.in_flight == 0

    run(pools, gate, dsn, test, max_size=2)
    assert_counted(gate, ignore=2)


@pytest.mark.leak(HOOK, "timeout")
def test_a_checkout_that_times_out_is_overload(pools: type[APool], gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        async with pool.connection():
            with pytest.raises(PoolTimeout):
                await asyncio.create_task(pool.getconn(timeout=0.01))
            assert gate.in_flight == 1

    run(pools, gate, dsn, test)
    assert_counted(gate, success=1, overload=1)


@pytest.mark.leak(HOOK, "timeout")
def test_what_the_pool_refuses_is_overload(pools: type[APool], gate: Gate, dsn: str) -> None:
    gate.set_limit(3)

    async def test(pool: APool) -> None:
        async with pool.connection():
            waiting = asyncio.create_task(query(pool))
            await turns_until(lambda: pool.get_stats().get("requests_waiting", 0) == 1)
            with pytest.raises(TooManyRequests):
                await asyncio.create_task(query(pool))
            assert gate.in_flight == 2
        await waiting

    run(pools, gate, dsn, test, max_waiting=1)
    assert_counted(gate, success=2, overload=1)


@pytest.mark.leak(HOOK, "timeout")
def test_timeouts_at_the_moment_of_the_handover(gate: Gate, dsn: str) -> None:
    """D13 and psycopg 1345, 1401: whoever waits for the pool gives up just when a connection is returned."""

    async def test(pool: APool) -> None:
        for tick in range(20):
            connection = await pool.getconn()
            waiting = asyncio.create_task(query(pool))
            await turns_until(lambda: pool.get_stats().get("requests_waiting", 0) == 1)
            returning = asyncio.create_task(pool.putconn(connection))
            for _ in range(tick):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting, returning])
            assert waiting.cancelled() or waiting.exception() is None
            assert gate.in_flight == 0

    run(GatedAsyncConnectionPool, gate, dsn, test)
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "invalidate")
def test_a_connection_that_is_closed_in_the_block(pools: type[APool], gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        for _ in range(3):
            async with pool.connection() as connection:
                await connection.close()
            assert gate.in_flight == 0

    run(pools, gate, dsn, test)
    assert_counted(gate, success=3)


@pytest.mark.leak(HOOK, "gc")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_connection_that_is_never_put_back(pools: type[APool], gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        connection = await pool.getconn()
        assert gate.in_flight == 1
        del connection
        collect()
        assert gate.in_flight == 0

    run(pools, gate, dsn, test)
    assert gate.stats().collected == 1
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "nested")
def test_a_nested_checkout_is_free_but_for_tasks_of_one_s_own(gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        gate.set_limit(1)
        async with pool.connection(), pool.connection():
            assert gate.in_flight == 1
            with pytest.raises(Shed):
                await asyncio.create_task(query(pool))

    run(GatedAsyncConnectionPool, gate, dsn, test, max_size=2)
    assert_counted(gate, success=1)


@pytest.mark.leak(HOOK, "nested")
def test_the_permit_of_the_request_serves_its_tasks(gate: Gate, dsn: str) -> None:
    """D32: counted once by the edge, the decorator and the pool, with every place taken."""

    async def test(pool: APool) -> None:
        @gate.guard
        async def handler() -> None:
            async with pool.connection():
                await asyncio.gather(query(pool), query(pool))

        async def request() -> None:
            with Hold.enter(gate) as hold, marked(hold):
                await handler()

        await asyncio.gather(*[request() for _ in range(4)])

    gate.set_limit(4)
    run(GatedAsyncConnectionPool, gate, dsn, test, max_size=12)
    assert gate.stats().high_water == 4
    assert_counted(gate, success=4)


@pytest.mark.leak(HOOK, "failed-connect")
def test_a_database_that_is_not_there(pools: type[APool], gate: Gate) -> None:
    async def test(pool: APool) -> None:
        for _ in range(3):
            with pytest.raises((PoolTimeout, psycopg.OperationalError)):
                await query(pool)
            assert gate.in_flight == 0

    run(pools, gate, "postgresql://nobody@127.0.0.1:1/none", test, timeout=0.01)
    assert admitted(gate.stats()) == 3
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "dispose")
def test_a_pool_that_is_closed_with_a_connection_out(pools: type[APool], gate: Gate, dsn: str) -> None:
    async def test(pool: APool) -> None:
        connection = await pool.getconn()
        waiting = asyncio.create_task(query(pool))
        await turns_until(lambda: pool.get_stats().get("requests_waiting", 0) == 1)
        await pool.close()
        with pytest.raises(PoolClosed):
            await waiting
        assert gate.in_flight == 1
        await pool.putconn(connection)
        assert gate.in_flight == 0
        with pytest.raises(PoolClosed):
            await query(pool)

    run(pools, gate, dsn, test)
    assert_counted(gate, success=1, ignore=2)


@pytest.mark.leak(HOOK, "server-killed")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_server_is_killed(postgres_server: PostgresServer, gate: Gate) -> None:
    async def test(pool: APool) -> None:
        with pytest.raises(psycopg.OperationalError):
            async with pool.connection() as connection:
                postgres_server.kill()
                await connection.execute("select 1")
        assert gate.in_flight == 0
        with pytest.raises(PoolTimeout):
            await pool.getconn(timeout=0.01)
        assert gate.in_flight == 0
        postgres_server.start()
        await query(pool)

    run(
        GatedAsyncConnectionPool,
        gate,
        postgres_server.dsn,
        test,
        check=AsyncConnectionPool.check_connection,
    )
    collect()
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "keyboard-interrupt")
@pytest.mark.filterwarnings("ignore")  # of what an ended loop leaves behind
def test_interrupts_of_the_loop(gate: Gate, dsn: str) -> None:
    async def main() -> None:
        async with GatedAsyncConnectionPool(gate, dsn, min_size=1, open=False) as pool:
            await query(pool)
            await query(pool)

    interrupted = 0
    for tick in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377):
        interrupted += interrupted_at(tick, main)
        collect()
        assert gate.in_flight == 0, tick
    assert interrupted
    assert_at_rest(gate)
