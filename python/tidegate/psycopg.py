"""The pools of ``psycopg_pool``, with a gate in front.

    pool = GatedConnectionPool(gate, conninfo, max_size=10)

A checkout takes a permit before it waits for the pool, and the permit goes when the connection is put back or
collected. What does not fit raises Shed.

Besides documented methods this rests on `connection`, and a connection's ``close`` where the pool has
``close_returns``, going through `getconn` and `putconn`; ``test_pools_psycopg_contract.py`` holds them to it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

from psycopg_pool import (
    AsyncConnectionPool,
    AsyncNullConnectionPool,
    ConnectionPool,
    NullConnectionPool,
    PoolTimeout,
    TooManyRequests,
)
from psycopg_pool.abc import ACT, CT

from tidegate._arguments import check_gate
from tidegate._held import check_out
from tidegate._lease import Lease
from tidegate._native import Gate

__all__ = [
    "TESTED",
    "GatedAsyncConnectionPool",
    "GatedAsyncNullConnectionPool",
    "GatedConnectionPool",
    "GatedNullConnectionPool",
]

TESTED = "psycopg_pool 3.2.0, 3.2.8, 3.3.0 and 3.3.3"

_LEASE = "_tidegate_lease"


class GatedConnectionPool(ConnectionPool[CT]):
    """A ``psycopg_pool.ConnectionPool`` whose connections hold a permit while they are out.

    Args:
        gate: The gate. Its limit should exceed ``max_size`` by what may wait for a connection.
        conninfo: As for ``ConnectionPool``.
        options: As for ``ConnectionPool``.

    Raises:
        TypeError: The gate is none.
    """

    def __init__(self, gate: Gate, conninfo: Any = "", **options: Any) -> None:
        check_gate(gate)
        self._gate = gate
        super().__init__(conninfo, **options)

    @contextmanager
    def connection(self, timeout: float | None = None) -> Generator[CT]:
        """A connection for a block, as ``ConnectionPool.connection`` has it.

        Raises:
            Shed: The gate has no room. Nothing was waited for.
        """
        with super().connection(timeout) as connection:
            try:
                yield connection
            except BaseException as error:
                _note(connection, error)
                raise

    def getconn(self, timeout: float | None = None) -> CT:
        """A connection, to be given back by `putconn`.

        Raises:
            Shed: The gate has no room. Nothing was waited for.
        """
        hold = check_out(self._gate)
        try:
            connection = super().getconn(timeout)
            setattr(connection, _LEASE, Lease(hold))
        except (PoolTimeout, TooManyRequests):
            hold.leave("overload")
            raise
        except BaseException as error:
            hold.fail(error)
            raise
        return connection

    def putconn(self, conn: CT) -> None:
        """Give back a connection and its permit."""
        # Read before the connection is back: then it may belong to the next user, with the next lease.
        lease = _lease_of(conn)
        foreign = False
        try:
            super().putconn(conn)
        except ValueError:
            foreign = True
            raise
        finally:
            if lease is not None and not foreign:
                lease.hold.leave(lease.outcome)


class GatedNullConnectionPool(GatedConnectionPool[CT], NullConnectionPool[CT]):
    """A ``psycopg_pool.NullConnectionPool`` with a gate: connections are opened and closed for each user."""


class GatedAsyncConnectionPool(AsyncConnectionPool[ACT]):
    """A ``psycopg_pool.AsyncConnectionPool`` whose connections hold a permit while they are out.

    Args:
        gate: The gate. Its limit should exceed ``max_size`` by what may wait for a connection.
        conninfo: As for ``AsyncConnectionPool``.
        options: As for ``AsyncConnectionPool``.

    Raises:
        TypeError: The gate is none.
    """

    def __init__(self, gate: Gate, conninfo: Any = "", **options: Any) -> None:
        check_gate(gate)
        self._gate = gate
        super().__init__(conninfo, **options)

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncGenerator[ACT]:  # noqa: ASYNC109
        """A connection for a block, as ``AsyncConnectionPool.connection`` has it.

        Raises:
            Shed: The gate has no room. Nothing was waited for.
        """
        async with super().connection(timeout) as connection:
            try:
                yield connection
            except BaseException as error:
                _note(connection, error)
                raise

    async def getconn(self, timeout: float | None = None) -> ACT:  # noqa: ASYNC109
        """A connection, to be given back by `putconn`.

        Raises:
            Shed: The gate has no room. Nothing was waited for.
        """
        hold = check_out(self._gate)
        try:
            connection = await super().getconn(timeout)
            setattr(connection, _LEASE, Lease(hold))
        except (PoolTimeout, TooManyRequests):
            hold.leave("overload")
            raise
        except BaseException as error:
            hold.fail(error)
            raise
        return connection

    async def putconn(self, conn: ACT) -> None:
        """Give back a connection and its permit."""
        lease = _lease_of(conn)
        foreign = False
        try:
            await super().putconn(conn)
        except ValueError:
            foreign = True
            raise
        finally:
            if lease is not None and not foreign:
                lease.hold.leave(lease.outcome)


class GatedAsyncNullConnectionPool(GatedAsyncConnectionPool[ACT], AsyncNullConnectionPool[ACT]):
    """A ``psycopg_pool.AsyncNullConnectionPool`` with a gate."""


def _lease_of(connection: object) -> Lease | None:
    """What the connection was last checked out with; an ended one where nobody has it now."""
    return cast("Lease | None", getattr(connection, _LEASE, None))


def _note(connection: object, error: BaseException) -> None:
    lease = _lease_of(connection)
    if lease is not None:
        lease.note(error)
