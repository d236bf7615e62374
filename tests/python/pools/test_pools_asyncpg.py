"""A connection of asyncpg's pool holds a permit exactly as long as it is checked out."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any

import pytest

asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is not installed", exc_type=ImportError)

from gatekit import PATIENCE, admitted, assert_at_rest, released, shed  # noqa: E402
from tidegate import Gate, Shed, Stats, use_priority  # noqa: E402
from tidegate._held import marked  # noqa: E402
from tidegate._native import Hold  # noqa: E402
from tidegate.asyncpg import GatedPool, create_pool  # noqa: E402
from tidegate.demo.postgres_server import PostgresServer  # noqa: E402

leak = pytest.mark.leak
Body = Callable[[GatedPool], Awaitable[None]]
Run = Callable[..., Stats]


# What asyncpg raises where a connection is lost depends on what it was about to do.
LOST = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


class Abort(BaseException):
    pass


@asynccontextmanager
async def pool_of(gate: Gate, dsn: str, size: int = 2, **options: Any) -> AsyncIterator[GatedPool]:
    pool = await create_pool(gate, dsn, min_size=0, max_size=size, **options)
    try:
        yield pool
    finally:
        pool.terminate()


@pytest.fixture
def run(gate: Gate, dsn: str) -> Run:
    """Run a body with a pool, and see that nothing is left of it. Returns what the gate counted."""

    def run(body: Body, **options: Any) -> Stats:
        async def main() -> None:
            async with asyncio.timeout(PATIENCE), pool_of(gate, dsn, **options) as pool:
                await body(pool)

        asyncio.run(main())
        stats = gate.stats()
        assert_at_rest(gate)
        return stats

    return run


def in_use(pool: GatedPool) -> int:
    return sum(holder._in_use is not None for holder in pool._holders)


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0)


async def ended(task: asyncio.Task[Any]) -> Any:
    """What a task came to, an exception as well."""
    return (await asyncio.gather(task, return_exceptions=True))[0]


# --- what it is for --------------------------------------------------------------------------------


def test_every_way_to_a_connection_holds_a_permit(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        async with pool.acquire() as connection:
            assert gate.in_flight == 1
            assert await connection.fetchval("SELECT 1") == 1
        assert gate.in_flight == 0, "on the line after the block"
        connection = await pool.acquire()
        assert gate.in_flight == 1
        await pool.release(connection)
        assert gate.in_flight == 0
        await pool.release(connection)  # as with asyncpg: once more does nothing
        await pool.execute("CREATE TEMPORARY TABLE t (n int)")
        await pool.executemany("SELECT $1::int", [(1,), (2,)])
        assert [row[0] for row in await pool.fetch("SELECT generate_series(1, 2)")] == [1, 2]
        assert (await pool.fetchrow("SELECT 3"))[0] == 3
        assert await pool.fetchval("SELECT 4") == 4

    stats = run(body)
    assert admitted(stats) == 7
    assert released(stats) == {"success": 7}


def test_a_full_gate_sheds_at_once_by_every_way(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        with gate, gate:
            for attempt in (
                lambda: pool.acquire().__aenter__(),
                pool.acquire,
                lambda: pool.acquire(timeout=60),
                lambda: pool.fetch("SELECT 1"),
                lambda: pool.execute("SELECT 1"),
            ):
                with pytest.raises(Shed) as raised:
                    await attempt()
                assert raised.value.reason == "limit"
        assert pool.get_size() == 0, "the pool was not asked"

    stats = run(body)
    assert shed(stats) == 5


def test_acquire_holds_nothing_until_it_is_entered(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        acquisition = pool.acquire()
        assert gate.in_flight == 0
        async with acquisition:
            with pytest.raises(asyncpg.InterfaceError, match="already acquired"):
                await acquisition.__aenter__()
            assert gate.in_flight == 1
        with pytest.raises(asyncpg.InterfaceError, match="already acquired"):
            await acquisition.__aenter__()

    run(body)


def test_the_priority_is_the_contexts(gate: Gate, run: Run) -> None:
    gate.set_thresholds({"sheddable": 0.5, "sheddable_plus": 0.5})

    async def body(pool: GatedPool) -> None:
        async with pool.acquire():
            with use_priority("sheddable"):

                async def report() -> None:
                    await pool.fetch("SELECT 1")

                assert isinstance(await ended(asyncio.create_task(report())), Shed)

    stats = run(body)
    assert shed(stats, "priority") == 1


def test_what_the_block_came_to(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        with pytest.raises(TimeoutError):
            # Not for long: a cancellation that overtakes its query is lost, and the release waits for it.
            await pool.execute("SELECT pg_sleep(1)", timeout=0.001)
        with pytest.raises(asyncpg.PostgresSyntaxError):
            await pool.execute("SELEKT")
        await pool.execute("SELECT 1")

    stats = run(body)
    assert released(stats) == {"success": 2, "overload": 1}


def test_awaiting_the_pool_or_entering_it(gate: Gate, dsn: str) -> None:
    async def main() -> None:
        pool = create_pool(gate, dsn, min_size=1, max_size=1)
        assert await pool is pool
        await pool.close()
        async with create_pool(gate, dsn, min_size=1, max_size=1) as entered:
            assert isinstance(entered, asyncpg.Pool)
        assert gate.in_flight == 0
        assert admitted(gate.stats()) == 0, "connecting in advance takes no permit"

    asyncio.run(main())


def test_bad_gates_and_options() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match=r"gate must be a Gate, got 'postgresql:.*' \(str\)"):
            create_pool("postgresql://localhost")
        with pytest.raises(ValueError, match="max_size"):
            create_pool(Gate("db", 1), max_size=0)

    asyncio.run(main())


# --- leaks -----------------------------------------------------------------------------------------


@leak("asyncpg", "exception")
def test_exception_in_the_body(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        with pytest.raises(KeyError):
            async with pool.acquire() as connection, connection.transaction():
                raise KeyError
        assert gate.in_flight == 0

    stats = run(body)
    assert released(stats) == {"success": 1}


@leak("asyncpg", "base-exception")
def test_base_exception_in_the_body(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        with pytest.raises(Abort):
            async with pool.acquire():
                raise Abort
        assert gate.in_flight == 0

    stats = run(body)
    assert released(stats) == {"ignore": 1}


@leak("asyncpg", "cancel-before")
def test_cancelled_before_the_checkout(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        task = asyncio.create_task(pool.fetchval("SELECT 1"))
        task.cancel()
        assert isinstance(await ended(task), asyncio.CancelledError)
        assert gate.in_flight == 0

    stats = run(body)
    assert admitted(stats) == 0


@leak("asyncpg", "cancel-in")
def test_cancelled_while_it_waits_for_a_connection(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        async with pool.acquire():
            task = asyncio.create_task(pool.fetchval("SELECT 1"))
            await turns()
            assert gate.in_flight == 2
            task.cancel()
            assert isinstance(await ended(task), asyncio.CancelledError)
            assert gate.in_flight == 1

    stats = run(body, size=1)
    assert released(stats) == {"ignore": 1, "success": 1}


@leak("asyncpg", "cancel-in")
@pytest.mark.parametrize("hook", ["connect", "init", "setup"])
def test_cancelled_while_it_connects(gate: Gate, run: Run, hook: str) -> None:
    entered: list[int] = []

    async def forever(*args: Any, **options: Any) -> None:
        entered.append(gate.in_flight)
        await asyncio.sleep(60)

    async def body(pool: GatedPool) -> None:
        task = asyncio.create_task(pool.fetchval("SELECT 1"))
        await until(lambda: bool(entered))
        task.cancel()
        assert isinstance(await ended(task), asyncio.CancelledError)
        assert gate.in_flight == 0
        assert pool._queue.qsize() == 2, "the pool has all its room"

    stats = run(body, **{hook: forever})
    assert entered == [1]
    assert released(stats) == {"ignore": 1}


@leak("asyncpg", "cancel-after")
def test_cancelled_in_the_body(gate: Gate, run: Run, dsn: str) -> None:
    async def body(pool: GatedPool) -> None:
        async def work() -> None:
            async with pool.acquire() as connection:
                await connection.execute("SELECT pg_sleep(60)")

        task = asyncio.create_task(work())
        observer = await asyncpg.connect(dsn)
        running = (
            "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'"
        )
        while not await observer.fetchval(running):  # a cancellation that overtakes its query is lost
            pass
        await observer.close()
        task.cancel()
        assert isinstance(await ended(task), asyncio.CancelledError)
        assert await pool.fetchval("SELECT 1") == 1

    stats = run(body)
    assert released(stats) == {"ignore": 1, "success": 1}


@leak("asyncpg", "cancel-after")
def test_cancelled_in_the_release_the_permit_stays_until_the_connection_is_back(gate: Gate, run: Run) -> None:
    resetting, go_on = asyncio.Event(), asyncio.Event()

    async def reset(connection: Any) -> None:
        resetting.set()
        await go_on.wait()

    async def body(pool: GatedPool) -> None:
        async def work() -> None:
            async with pool.acquire():
                pass

        task = asyncio.create_task(work())
        await resetting.wait()
        task.cancel()
        assert isinstance(await ended(task), asyncio.CancelledError)
        assert gate.in_flight == 1, "the connection is not back yet"
        go_on.set()
        await until(lambda: gate.in_flight == 0)
        assert pool._queue.qsize() == 2

    run(body, reset=reset)


@leak("asyncpg", "timeout")
def test_no_connection_within_the_timeout_is_overload(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        async with pool.acquire():

            async def late() -> None:
                async with pool.acquire(timeout=0.001):
                    pytest.fail("there was a connection")

            assert isinstance(await ended(asyncio.create_task(late())), TimeoutError)
            assert gate.in_flight == 1
            with pytest.raises(TimeoutError):
                await pool.acquire(timeout=0)

    stats = run(body, size=1)
    assert released(stats) == {"overload": 2}, "that of the task, and the outer one's with the nested one's"


@leak("asyncpg", "timeout")
def test_a_timeout_of_the_release(gate: Gate, run: Run) -> None:
    async def reset(connection: Any) -> None:
        await connection.execute("SELECT pg_sleep(60)")

    async def body(pool: GatedPool) -> None:
        connection = await pool.acquire()
        with pytest.raises(TimeoutError):
            await pool.release(connection, timeout=0.001)
        await turns()
        assert gate.in_flight == 0
        assert pool._queue.qsize() == 2

    run(body, reset=reset)


@leak("asyncpg", "invalidate")
def test_expired_closed_and_terminated_connections(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        async with pool.acquire() as connection:
            await pool.expire_connections()
            assert gate.in_flight == 1
        assert gate.in_flight == 0
        async with pool.acquire() as connection:
            await connection.close()
            await turns()
            assert gate.in_flight == 0, "there is no connection any more"
        async with pool.acquire() as connection:
            connection.terminate()
        assert gate.in_flight == 0
        async with pool.acquire() as connection:
            assert await connection.fetchval("SELECT 1") == 1
        assert gate.in_flight == 0

    stats = run(body)
    assert released(stats) == {"success": 4}


@leak("asyncpg", "invalidate")
def test_a_connection_that_is_used_up(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        for _ in range(3):
            await pool.fetchval("SELECT 1")
            assert gate.in_flight == 0

    run(body, max_queries=1)


@leak("asyncpg", "gc")
def test_a_forgotten_connection_keeps_its_permit_until_the_pool_ends(gate: Gate, run: Run) -> None:
    """The pool keeps it, too: nobody else gets that connection."""

    async def body(pool: GatedPool) -> None:
        async def forget() -> None:
            await pool.acquire()

        await asyncio.create_task(forget())
        gc.collect()
        assert gate.in_flight == 1
        assert pool._queue.qsize() == 1
        pool.terminate()
        await turns()
        assert gate.in_flight == 0

    run(body)


@leak("asyncpg", "gc")
def test_a_forgotten_pool(gate: Gate, dsn: str) -> None:
    async def forget() -> None:
        pool = await create_pool(gate, dsn, min_size=0, max_size=1)
        await pool.acquire()

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(forget())
        gc.collect()
    assert any("permit" in str(warning.message) for warning in warned)
    assert gate.stats().collected == 1
    assert_at_rest(gate)


@leak("asyncpg", "nested")
def test_a_further_connection_of_the_same_task_is_free(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        async with pool.acquire():
            assert await pool.fetchval("SELECT 1") == 1
            async with pool.acquire():
                assert gate.in_flight == 1
            assert gate.in_flight == 1

            async def other() -> int:
                async with pool.acquire():
                    return gate.in_flight

            assert await asyncio.create_task(other()) == 2, "another task's is its own"
        assert gate.in_flight == 0
        first, second = await pool.acquire(), await pool.acquire()
        await pool.release(first)
        assert gate.in_flight == 1, "the permit goes with the last of them"
        await pool.release(second)
        assert gate.in_flight == 0

    stats = run(body)
    assert admitted(stats) == 3


@leak("asyncpg", "nested")
def test_a_request_that_holds_a_permit_is_never_shed(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        with gate, Hold.enter(gate) as hold, marked(hold):
            with pytest.raises(Shed):
                gate.__enter__()
            rows = await asyncio.gather(*(pool.fetchval("SELECT 1") for _ in range(5)))
            assert rows == [1] * 5
            assert gate.in_flight == 2

    run(body)


@leak("asyncpg", "failed-connect")
def test_a_connection_that_is_refused(gate: Gate) -> None:
    async def main() -> None:
        async with pool_of(gate, "postgresql://postgres@127.0.0.1:1/postgres") as pool:
            for _ in range(5):
                with pytest.raises(OSError, match="Connect"):
                    await pool.fetchval("SELECT 1")
                assert gate.in_flight == 0
            assert pool._queue.qsize() == 2

    asyncio.run(main())
    assert_at_rest(gate)


@leak("asyncpg", "failed-connect")
def test_too_many_connections_for_the_server_is_overload(gate: Gate, dsn: str) -> None:
    async def main() -> None:
        admin = await asyncpg.connect(dsn)
        await admin.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 0")
        try:
            async with pool_of(gate, dsn, user="few") as pool:
                with pytest.raises(asyncpg.TooManyConnectionsError):
                    await pool.fetchval("SELECT 1")
                assert gate.in_flight == 0
                assert pool._queue.qsize() == 2
        finally:
            await admin.execute("DROP ROLE few")
            await admin.close()

    asyncio.run(main())
    assert released(gate.stats()) == {"overload": 1}
    assert_at_rest(gate)


@leak("asyncpg", "failed-connect")
@pytest.mark.parametrize("hook", ["connect", "init", "setup"])
@pytest.mark.parametrize("error", [KeyError, Abort])
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # asyncpg's, after an Abort
def test_a_hook_of_the_pool_that_raises(gate: Gate, run: Run, hook: str, error: type[BaseException]) -> None:
    async def fail(*args: Any, **options: Any) -> None:
        assert gate.in_flight == 1
        raise error

    async def body(pool: GatedPool) -> None:
        with pytest.raises(error):
            await pool.acquire()
        assert gate.in_flight == 0
        if error is KeyError:  # asyncpg itself loses the place of a connection whose hook raises an Abort
            assert pool._queue.qsize() == 2

    run(body, **{hook: fail})
    gc.collect()


@leak("asyncpg", "failed-connect")
def test_a_connection_that_is_lost_in_setup(gate: Gate, run: Run) -> None:
    """asyncpg hands it out, dead, and could never take it back."""
    lose = True

    async def setup(connection: Any) -> None:
        if lose:
            connection.terminate()

    async def body(pool: GatedPool) -> None:
        nonlocal lose
        with pytest.raises(asyncpg.ConnectionDoesNotExistError, match="setup"):
            await pool.acquire()
        assert gate.in_flight == 0
        lose = False
        assert await pool.fetchval("SELECT 1") == 1

    run(body, setup=setup, size=1)


@leak("asyncpg", "exception")
def test_a_reset_hook_that_raises(gate: Gate, run: Run) -> None:
    async def reset(connection: Any) -> None:
        raise KeyError

    async def body(pool: GatedPool) -> None:
        with pytest.raises(KeyError):
            async with pool.acquire():
                pass
        await turns()
        assert gate.in_flight == 0
        assert pool._queue.qsize() == 2

    run(body, reset=reset)


@leak("asyncpg", "dispose")
def test_close_waits_for_connections_that_are_out(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        connection = await pool.acquire()
        closing = asyncio.create_task(pool.close())
        await turns()
        assert gate.in_flight == 1
        with pytest.raises(asyncpg.InterfaceError, match="closing"):
            await pool.acquire()
        await pool.release(connection)
        await closing
        assert gate.in_flight == 0
        with pytest.raises(asyncpg.InterfaceError, match="closed"):
            await pool.acquire()

    run(body)


@leak("asyncpg", "dispose")
def test_close_that_is_given_up_and_terminate(gate: Gate, dsn: str) -> None:
    async def main() -> None:
        async with pool_of(gate, dsn) as pool:
            await pool.acquire()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(pool.close(), 0.001)
            assert gate.in_flight == 0, "asyncpg has terminated the pool"
        async with pool_of(gate, dsn) as pool:
            connection = await pool.acquire()
            pool.terminate()
            await turns()
            assert gate.in_flight == 0
            with pytest.raises(asyncpg.InterfaceError):
                await connection.fetchval("SELECT 1")

    asyncio.run(main())
    assert_at_rest(gate)


@leak("asyncpg", "dispose")
def test_a_pool_is_terminated_while_somebody_waits_for_it(gate: Gate, run: Run) -> None:
    async def body(pool: GatedPool) -> None:
        await pool.acquire()
        waiting = asyncio.create_task(pool.fetchval("SELECT 1"))
        await turns()
        assert gate.in_flight == 2
        pool.terminate()
        with pytest.raises(LOST):
            await waiting
        assert gate.in_flight == 0

    run(body, size=1)


@leak("asyncpg", "server-killed")
def test_the_server_is_killed(gate: Gate, postgres_server: PostgresServer) -> None:
    async def main() -> None:
        async with pool_of(gate, postgres_server.dsn) as pool:
            idle = await pool.acquire()
            busy = asyncio.create_task(pool.fetchval("SELECT pg_sleep(60)"))
            await until(lambda: in_use(pool) == 2)
            postgres_server.kill()
            with pytest.raises(LOST):
                await busy
            await until(lambda: gate.in_flight == 0)  # the idle one's end is noticed by the loop, too
            await pool.release(idle)
            with pytest.raises(LOST):
                await pool.fetchval("SELECT 1")
            assert gate.in_flight == 0
            postgres_server.start()
            assert await pool.fetchval("SELECT 1") == 1

    asyncio.run(main())
    assert_at_rest(gate)


def test_a_mark_does_not_outlive_its_task(gate: Gate, run: Run) -> None:
    """A task that is started while a connection is out inherits the context, and takes its own permit."""

    async def body(pool: GatedPool) -> None:
        connection = await pool.acquire()
        child = asyncio.create_task(pool.fetchval("SELECT pg_sleep(0)"), context=Context())
        await child
        await pool.release(connection)

    stats = run(body)
    assert admitted(stats) == 2
