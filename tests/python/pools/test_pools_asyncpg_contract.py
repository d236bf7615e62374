"""The private parts of asyncpg that the hook rests on are where they were."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is not installed", exc_type=ImportError)

from asyncpg import pool as asyncpg_pool  # noqa: E402
from tidegate import Gate  # noqa: E402
from tidegate.asyncpg import create_pool  # noqa: E402

MOVED = (
    f"asyncpg {asyncpg.__version__} has moved what tidegate.asyncpg rests on: compare its asyncpg/pool.py "
    "with that of 0.32.0 at {}, then change python/tidegate/asyncpg.py"
)


def test_acquire_is_all_that_checks_out() -> None:
    assert list(inspect.signature(asyncpg.Pool._acquire).parameters) == ["self", "timeout"], MOVED.format(
        "Pool._acquire"
    )
    source = inspect.getsource(asyncpg_pool)
    assert source.count("_queue.get()") == 1, MOVED.format("Pool._acquire, the only one to take a holder")
    context = inspect.signature(asyncpg_pool.PoolAcquireContext).parameters
    assert list(context) == ["pool", "timeout"], MOVED.format("PoolAcquireContext")


def test_create_pools_defaults_are_the_pools_arguments() -> None:
    parameters = inspect.signature(asyncpg.Pool).parameters.values()
    named = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    assert set(asyncpg.create_pool.__kwdefaults__) == named, MOVED.format("create_pool")


def test_the_future_is_pending_while_the_connection_is_out(gate: Gate, dsn: str) -> None:
    async def main() -> None:
        during_setup: list[Any] = []

        async def setup(proxy: Any) -> None:
            during_setup.append(proxy._holder._in_use)

        pool = await asyncpg.create_pool(dsn, min_size=0, max_size=1, setup=setup)
        proxy = await pool.acquire()
        holder = proxy._holder
        in_use = holder._in_use
        order: list[str] = []
        assert during_setup == [None], MOVED.format("PoolConnectionHolder.acquire: in use only after setup")
        assert isinstance(in_use, asyncio.Future), MOVED.format("PoolConnectionHolder.acquire: _in_use")
        assert not in_use.done(), MOVED.format("PoolConnectionHolder.acquire: _in_use")
        assert holder._con is not None, MOVED.format("PoolConnectionHolder._con")
        in_use.add_done_callback(lambda _: order.append("back"))

        async def wait_for_it() -> None:
            other = await pool.acquire()
            order.append("out again")
            await pool.release(other)

        waiting = asyncio.create_task(wait_for_it())
        await asyncio.sleep(0)
        await pool.release(proxy)
        await waiting
        assert order == ["back", "out again"], MOVED.format(
            "PoolConnectionHolder._release: the order of its steps"
        )
        pool.terminate()

    asyncio.run(main())


def test_a_holder_without_a_connection_was_lost_in_setup(dsn: str) -> None:
    """When this fails, asyncpg has mended it, and `_in_use` needs no case for it."""

    async def main() -> None:
        async def setup(proxy: Any) -> None:
            proxy.terminate()

        pool = await asyncpg.create_pool(dsn, min_size=0, max_size=1, setup=setup)
        proxy = await pool.acquire()
        assert proxy._holder._con is None, MOVED.format("PoolConnectionHolder.acquire after setup")
        assert pool._queue.qsize() == 0
        proxy._holder._release()
        assert pool._queue.qsize() == 1, MOVED.format("PoolConnectionHolder._release")
        pool.terminate()

    asyncio.run(main())


def test_our_pool_has_asyncpgs_defaults(gate: Gate) -> None:
    async def main() -> None:
        pool, stock = create_pool(gate), asyncpg.create_pool()
        for size in ("get_min_size", "get_max_size"):
            assert getattr(pool, size)() == getattr(stock, size)()

    asyncio.run(main())
