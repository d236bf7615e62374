"""What tidegate.psycopg expects of psycopg_pool beyond its documentation.

A failure here means: this release of psycopg_pool has moved something that the gate rests on. Look at where
the message points, mend python/tidegate/psycopg.py, and run the leak matrix.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import psycopg_pool
import pytest
from psycopg_pool import AsyncConnectionPool, AsyncNullConnectionPool, ConnectionPool, NullConnectionPool
from tidegate.psycopg import TESTED

VERSION = f"psycopg_pool {psycopg_pool.__version__} (tested: {TESTED})"
THREADED = [ConnectionPool, NullConnectionPool]
ASYNC = [AsyncConnectionPool, AsyncNullConnectionPool]


@pytest.mark.parametrize("pools", THREADED + ASYNC)
def test_the_methods_take_what_the_gate_passes(pools: type[Any]) -> None:
    for name, expected in {
        "connection": ["self", "timeout"],
        "getconn": ["self", "timeout"],
        "putconn": ["self", "conn"],
    }.items():
        parameters = list(inspect.signature(getattr(pools, name)).parameters)
        assert parameters == expected, f"{VERSION}: {pools.__name__}.{name} takes {parameters}"


def watched(pools: type[Any]) -> tuple[type[Any], list[str]]:
    """A subclass that notes its calls."""
    calls: list[str] = []

    class Watched(pools):  # type: ignore[misc]
        def getconn(self, timeout: float | None = None) -> Any:
            calls.append("getconn")
            return super().getconn(timeout)

        def putconn(self, conn: Any) -> Any:
            calls.append("putconn")
            return super().putconn(conn)

    return Watched, calls


def message(calls: list[str], way: str) -> str:
    return f"{VERSION}: {way} does {calls}; see getconn and putconn in tidegate/psycopg.py"


@pytest.mark.parametrize("pools", THREADED)
def test_every_way_to_a_connection_passes_the_gate(pools: type[Any], dsn: str) -> None:
    kind, calls = watched(pools)
    with kind(dsn, min_size=0, max_size=1, open=True) as pool, pool.connection():
        pass
    assert calls == ["getconn", "putconn"], message(calls, "connection()")
    if pools is ConnectionPool:
        calls.clear()
        with kind(dsn, min_size=1, open=True, close_returns=True) as pool:
            pool.getconn().close()
        assert calls == ["getconn", "putconn"], message(calls, "close() with close_returns")


@pytest.mark.parametrize("pools", ASYNC)
def test_every_way_to_an_async_connection_passes_the_gate(pools: type[Any], dsn: str) -> None:
    kind, calls = watched(pools)

    async def main() -> None:
        async with kind(dsn, min_size=0, max_size=1, open=False) as pool, pool.connection():
            pass
        assert calls == ["getconn", "putconn"], message(calls, "connection()")
        if pools is AsyncConnectionPool:
            calls.clear()
            async with kind(dsn, min_size=1, open=False, close_returns=True) as pool:
                await (await pool.getconn()).close()
            assert calls == ["getconn", "putconn"], message(calls, "close() with close_returns")

    asyncio.run(main())


def test_a_connection_has_room_for_the_lease_and_a_foreign_one_is_a_value_error(dsn: str) -> None:
    with ConnectionPool(dsn, min_size=1, open=True) as pool:
        connection = pool.getconn()
        connection._tidegate_lease = None  # type: ignore[attr-defined]
        pool.putconn(connection)
        with pytest.raises(ValueError, match="can't return connection"):
            pool.putconn(connection)
