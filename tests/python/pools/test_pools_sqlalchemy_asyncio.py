"""tidegate.sqlalchemy on asyncio engines, over asyncpg and psycopg."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from gatekit import PATIENCE, admitted, assert_at_rest, shed
from poolkit import Stop, assert_counted, cancelled_at, collect, driver, interrupted_at, turns_until
from sqlalchemy import event, exc, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, NullPool
from tidegate import ConfigError, Gate, Shed
from tidegate._held import marked
from tidegate._native import Hold
from tidegate.demo.postgres_server import PostgresServer
from tidegate.sqlalchemy import gated

HOOK = "sqlalchemy-asyncio"
SIMPLE = text("select 1")
ENDLESS = text("select pg_sleep(600)")


@pytest.fixture(params=["asyncpg", "psycopg"])
def url(request: pytest.FixtureRequest, dsn: str) -> str:
    return driver(dsn, request.param)


@asynccontextmanager
async def engine_of(
    url: str, gate: Gate, hold_until: Any = "return", **options: Any
) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(url, **options, **gated(gate, hold_until=hold_until))
    try:
        yield engine
    finally:
        await engine.dispose()


def run(
    url: str, gate: Gate, test: Callable[[AsyncEngine], Coroutine[Any, Any, None]], **options: Any
) -> None:
    """The test with an engine, within its patience."""

    async def main() -> None:
        async with asyncio.timeout(PATIENCE), engine_of(url, gate, **options) as engine:
            await test(engine)

    asyncio.run(main())


async def query(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        assert await connection.scalar(SIMPLE) == 1


# --- what it does ----------------------------------------------------------------------------------


def test_the_same_line_serves_asyncio(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        assert isinstance(engine.pool, AsyncAdaptedQueuePool)
        async with engine.connect() as connection:
            assert gate.in_flight == 1
            assert await connection.scalar(SIMPLE) == 1
        assert gate.in_flight == 0
        async with engine.begin():
            assert gate.in_flight == 1

    run(url, gate, test)
    assert_counted(gate, success=2)


def test_what_does_not_fit_is_shed_as_it_is(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        async def session() -> None:
            async with AsyncSession(engine) as session:
                await session.execute(SIMPLE)

        async def stream() -> None:
            async with AsyncSession(engine) as session:
                await session.stream(SIMPLE)

        ways = [engine.connect, lambda: query(engine), engine.raw_connection, session, stream]
        permits = [gate.try_admit() for _ in range(gate.limit)]
        for way in ways:
            with pytest.raises(Shed) as caught:
                await way()
            assert type(caught.value) is Shed
            assert caught.value.__cause__ is None
        assert shed(gate.stats()) == len(ways)
        for permit in permits:
            permit.release()
        await session()

    run(url, gate, test)
    assert_at_rest(gate)


def test_a_gate_may_stand_instead_of_a_pool(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        assert isinstance(engine.pool, NullPool)
        await query(engine)

    run(url, gate, test, poolclass=NullPool)
    assert_counted(gate, success=1)


def test_sqlite(gate: Gate, tmp_path: Path) -> None:
    run(f"sqlite+aiosqlite:///{tmp_path}/db", gate, query)
    assert_counted(gate, success=1)
    with pytest.raises(ConfigError, match="StaticPool, which shares"):
        create_async_engine("sqlite+aiosqlite://", **gated(gate))


# --- the leak matrix -------------------------------------------------------------------------------


@pytest.mark.leak(HOOK, "exception")
def test_an_exception_in_the_block(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        with pytest.raises(ValueError, match="a bug"):
            async with engine.connect():
                raise ValueError("a bug")
        with pytest.raises(exc.DBAPIError):
            async with engine.begin() as connection:
                await connection.execute(text("select nonsense"))
        assert gate.in_flight == 0

    run(url, gate, test)
    assert_counted(gate, success=2)


@pytest.mark.leak(HOOK, "base-exception")
def test_a_base_exception_in_the_block(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        for error in (Stop, GeneratorExit, asyncio.CancelledError):
            with pytest.raises(error):
                async with engine.connect():
                    raise error
            assert gate.in_flight == 0

    run(url, gate, test)
    assert admitted(gate.stats()) == 3
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "exception")
@pytest.mark.parametrize("name", ["connect", "checkout"])
def test_a_listener_that_raises(url: str, gate: Gate, name: str) -> None:
    """sqlalchemy 13548."""

    async def test(engine: AsyncEngine) -> None:
        @event.listens_for(engine.sync_engine, name)
        def listener(*_: object) -> None:
            raise ValueError("of a listener")

        for _ in range(3):
            with pytest.raises(ValueError, match="of a listener"):
                await query(engine)
            assert gate.in_flight == 0

    run(url, gate, test)
    assert_counted(gate, ignore=3)


@pytest.mark.leak(HOOK, "cancel-before")
def test_a_task_that_is_cancelled_before_it_starts(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        assert await cancelled_at(0, query(engine))
        assert admitted(gate.stats()) == 0

    run(url, gate, test)
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "cancel-in")
def test_a_checkout_that_is_cancelled_while_it_waits(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        async with engine.connect():
            waiting = asyncio.create_task(query(engine))
            await turns_until(lambda: gate.in_flight == 2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert gate.in_flight == 1

    run(url, gate, test, pool_size=1, max_overflow=0)
    assert_counted(gate, success=1, ignore=1)


@pytest.mark.leak(HOOK, "cancel-in")
def test_a_connect_that_is_cancelled(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        for tick in (1, 2, 4, 8, 16, 32, 64):
            await cancelled_at(tick, query(engine))
            await turns_until(lambda: gate.in_flight == 0)
            await engine.dispose()

    run(url, gate, test)
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "cancel-in")
@pytest.mark.leak(HOOK, "cancel-after")
def test_a_cancellation_at_any_turn_of_the_loop(url: str, gate: Gate) -> None:
    """From before the checkout to after the return; D13 as far as without waiting."""

    async def test(engine: AsyncEngine) -> None:
        await query(engine)
        cancelled = 0
        for tick in range(1, 60):
            cancelled += await cancelled_at(tick, query(engine))
            await turns_until(lambda: gate.in_flight == 0)
        assert cancelled

    run(url, gate, test)
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "cancel-after")
def test_a_query_that_is_cancelled_is_no_success(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        async def endless() -> None:
            async with engine.connect() as connection:
                await connection.scalar(SIMPLE)
                running.set()
                await connection.execute(ENDLESS)

        running = asyncio.Event()
        task = asyncio.create_task(endless())
        await running.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert gate.in_flight == 0

    run(url, gate, test)
    assert_counted(gate, ignore=1)


@pytest.mark.leak(HOOK, "cancel-after")
def test_scopes_that_are_cancelled_around_the_block(url: str, gate: Gate) -> None:
    """D14: nested scopes, and a group in which a sibling fails."""

    async def test(engine: AsyncEngine) -> None:
        async def hold() -> None:
            async with engine.connect() as connection:
                await connection.scalar(SIMPLE)
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
            async with engine.connect() as connection:
                await connection.scalar(SIMPLE)
                inner.cancel()
                outer.cancel()
                await anyio.sleep_forever()
        # AnyIO cancels the wait for the return, too, which goes on in a task of SQLAlchemy's: the connection
        # is out until then.
        await turns_until(lambda: gate.in_flight == 0)

    run(url, gate, test)
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "timeout")
def test_a_checkout_that_times_out_is_overload(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        async with engine.connect():
            with pytest.raises(exc.TimeoutError):
                await asyncio.create_task(query(engine))
            assert gate.in_flight == 1

    run(url, gate, test, pool_size=1, max_overflow=0, pool_timeout=0.01)
    assert_counted(gate, success=1, overload=1)


@pytest.mark.leak(HOOK, "timeout")
def test_timeouts_at_the_moment_of_the_handover(url: str, gate: Gate) -> None:
    """D13: whoever waits for the pool gives up just when a connection is returned."""

    async def test(engine: AsyncEngine) -> None:
        for tick in range(40):
            async with engine.connect() as connection:
                waiting = asyncio.create_task(query(engine))
                await turns_until(lambda: gate.in_flight == 2)
                returning = asyncio.create_task(connection.close())
                for _ in range(tick):
                    await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait([waiting, returning])
                assert waiting.cancelled() or waiting.exception() is None
            await turns_until(lambda: gate.in_flight == 0)

    run(url, gate, test, pool_size=1, max_overflow=0)
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "invalidate")
def test_an_invalidated_connection(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        async with engine.connect() as connection:
            await connection.invalidate()
            assert gate.in_flight == 0
            assert await connection.scalar(SIMPLE) == 1
            assert gate.in_flight == 1

    run(url, gate, test)
    assert_counted(gate, success=2)


@pytest.mark.leak(HOOK, "invalidate")
def test_a_connection_that_was_lost_in_the_pool(url: str, gate: Gate) -> None:
    """Pre-ping, sqlalchemy 8974 and 6652: one release for each checkout, however often it connects."""

    async def test(engine: AsyncEngine) -> None:
        async with engine.connect() as admin:
            async with engine.connect() as connection:
                pid = await connection.scalar(text("select pg_backend_pid()"))
            await admin.execute(text("select pg_terminate_backend(:pid, 10000)"), {"pid": pid})
        for _ in range(2):
            async with engine.connect() as connection:
                assert await connection.scalar(text("select pg_backend_pid()")) != pid
        assert gate.in_flight == 0

    run(url, gate, test, pool_pre_ping=True)
    assert_counted(gate, success=3)


@pytest.mark.leak(HOOK, "detach")
@pytest.mark.filterwarnings(
    "ignore:.*was deleted while still open:ResourceWarning"
)  # SQLAlchemy forgets psycopg's
@pytest.mark.parametrize("hold_until", ["return", "close"])
def test_a_detached_connection(url: str, gate: Gate, hold_until: Any) -> None:
    async def test(engine: AsyncEngine) -> None:
        for _ in range(2):
            async with engine.connect() as connection:
                (await connection.get_raw_connection()).detach()
                assert gate.in_flight == (hold_until == "close")
                assert await connection.scalar(SIMPLE) == 1
            assert gate.in_flight == 0

    run(url, gate, test, hold_until=hold_until)
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "gc")
@pytest.mark.filterwarnings("ignore")  # SQLAlchemy and the drivers warn of it
def test_a_forgotten_connection(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        for _ in range(3):
            raw = await engine.raw_connection()
            assert gate.in_flight == 1
            del raw
            collect()
            assert gate.in_flight == 0
        await query(engine)

    run(url, gate, test)
    assert_counted(gate, success=4)


@pytest.mark.leak(HOOK, "nested")
def test_a_nested_checkout_is_free_but_for_tasks_of_one_s_own(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        gate.set_limit(1)
        async with engine.connect(), engine.connect():
            assert gate.in_flight == 1
            with pytest.raises(Shed):
                await asyncio.create_task(query(engine))

    run(url, gate, test)
    assert_counted(gate, success=1)


@pytest.mark.leak(HOOK, "nested")
def test_the_permit_of_the_request_serves_its_tasks(url: str, gate: Gate) -> None:
    """D32: counted once by the edge, the decorator and the pool, with every place taken."""

    async def test(engine: AsyncEngine) -> None:
        @gate.guard
        async def handler() -> None:
            async with engine.connect():
                await asyncio.gather(query(engine), query(engine))
                assert gate.in_flight <= 4

        async def request() -> None:
            with Hold.enter(gate) as hold, marked(hold):
                await handler()

        await asyncio.gather(*[request() for _ in range(4)])

    gate.set_limit(4)
    run(url, gate, test, pool_size=12)
    assert gate.stats().high_water == 4
    assert_counted(gate, success=4)


@pytest.mark.leak(HOOK, "failed-connect")
def test_a_connect_that_fails(gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        for _ in range(3):
            with pytest.raises((OSError, exc.OperationalError)):
                await query(engine)
            assert gate.in_flight == 0

    for name in ("asyncpg", "psycopg"):
        run(f"postgresql+{name}://nobody@127.0.0.1:1/none", gate, test)
    assert_counted(gate, ignore=6)


@pytest.mark.leak(HOOK, "dispose")
@pytest.mark.filterwarnings("ignore:.*was deleted while still open:ResourceWarning")
def test_dispose_with_a_connection_out(url: str, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        async with engine.connect() as connection:
            await engine.dispose()
            assert gate.in_flight == 1
            assert await connection.scalar(SIMPLE) == 1
            await asyncio.create_task(query(engine))  # from the pool that took its place, with the same gate
        await query(engine)

    run(url, gate, test)
    collect()  # the connection that was returned to the disposed pool
    assert_counted(gate, success=3)


@pytest.mark.leak(HOOK, "server-killed")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_server_is_killed(postgres_server: PostgresServer, gate: Gate) -> None:
    async def test(engine: AsyncEngine) -> None:
        with pytest.raises(exc.DBAPIError):
            async with engine.connect() as connection:
                await connection.scalar(SIMPLE)
                postgres_server.kill()
                await connection.scalar(SIMPLE)
        assert gate.in_flight == 0
        with pytest.raises((OSError, exc.DBAPIError)):
            await query(engine)
        assert gate.in_flight == 0
        postgres_server.start()
        await query(engine)

    for name in ("asyncpg", "psycopg"):
        run(driver(postgres_server.dsn, name), gate, test)
    collect()
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "keyboard-interrupt")
@pytest.mark.filterwarnings("ignore")  # of what an ended loop leaves behind
def test_interrupts_of_the_loop(url: str, gate: Gate) -> None:
    async def main() -> None:
        async with engine_of(url, gate) as engine:
            await query(engine)
            await query(engine)

    interrupted = 0
    for tick in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377):
        interrupted += interrupted_at(tick, main)
        collect()
        assert gate.in_flight == 0, tick
    assert interrupted
    assert_at_rest(gate)


def test_tasks_at_once(url: str) -> None:
    async def test(engine: AsyncEngine) -> None:
        async def use(number: int) -> int:
            try:
                async with engine.connect() as connection:
                    assert gate.in_flight <= gate.limit
                    await connection.scalar(SIMPLE)
                    if number % 3 == 0:
                        raise ValueError("a bug")
            except ValueError:
                return 0
            except Shed:
                return 1
            return 0

        refused = sum(await asyncio.gather(*[use(number) for number in range(200)]))
        assert shed(gate.stats()) == refused
        assert refused == 200 - admitted(gate.stats())

    gate = Gate("db", limit=6)
    run(url, gate, test, pool_size=3, max_overflow=1)
    assert gate.stats().high_water <= 6
    assert_at_rest(gate)
