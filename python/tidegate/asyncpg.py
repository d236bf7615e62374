"""Gates for asyncpg's connection pool: a connection that is checked out holds a permit.

    pool = await tidegate.asyncpg.create_pool(gate, "postgresql://...")

A pool without a gate waits for a connection for ever. Here whoever does not fit gets a Shed at once.

The permit goes with the connection, not with ``release()``: that one is shielded, so a cancelled caller is
gone before the connection is back. asyncpg has no public event for it, so this rests on three private things:
``Pool._acquire``, which all ways to a connection pass; ``proxy._holder``; and ``_holder._in_use``, a future
that is done once the connection is back, closed or lost. A contract test holds them.
"""

# asyncpg is not typed throughout, and its private parts are what this is about.
# pyright: reportPrivateUsage=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import asyncpg  # type: ignore[import-untyped]
from asyncpg.pool import PoolAcquireContext  # type: ignore[import-untyped]

from tidegate._arguments import check_gate
from tidegate._held import check_out
from tidegate._lease import Lease
from tidegate._native import Gate

if TYPE_CHECKING:
    from types import TracebackType

    from asyncpg.pool import PoolConnectionProxy


__all__ = ["TESTED", "GatedPool", "create_pool"]

TESTED = "asyncpg 0.30.0, 0.31.0, 0.32.0"


def create_pool(gate: Gate, dsn: str | None = None, **options: Any) -> GatedPool:
    """asyncpg.create_pool, with a gate in front of the pool.

    Args:
        gate: The gate. Its limit holds for this process, and should exceed ``max_size`` by what may wait for
            a connection.
        dsn: The database, as ``asyncpg.create_pool`` takes it.
        options: Whatever else ``asyncpg.create_pool`` takes.

    Returns:
        The pool, to be awaited or entered by ``async with``. Checking out a connection raises Shed when the
        gate has no room.

    Raises:
        TypeError: The gate is none.
    """
    # Not a copy of them: they differ from version to version.
    defaults: dict[str, Any] = asyncpg.create_pool.__kwdefaults__ or {}
    return GatedPool(dsn, gate=gate, **{**defaults, **options})


class GatedPool(asyncpg.Pool):  # type: ignore[misc]
    """An ``asyncpg.Pool`` whose connections hold a permit while they are checked out.

    Made by `create_pool`.
    """

    def __init__(self, *args: Any, gate: Gate, **options: Any) -> None:
        check_gate(gate)
        super().__init__(*args, **options)
        self._gate = gate

    def acquire(self, *, timeout: float | None = None) -> _Acquisition:
        """A connection, by ``async with`` or ``await``, as ``asyncpg.Pool.acquire`` has it.

        Raises, when entered or awaited:
            Shed: The gate has no room. Nothing was waited for.
            TimeoutError: No connection came free within `timeout` seconds.
        """
        return _Acquisition(self, timeout)

    async def _acquire(self, timeout: float | None) -> PoolConnectionProxy:  # noqa: ASYNC109
        return (await self._check_out(timeout))[0]

    async def _check_out(self, timeout: float | None) -> tuple[PoolConnectionProxy, Lease]:  # noqa: ASYNC109
        hold = check_out(self._gate)
        try:
            proxy = await super()._acquire(timeout)
            # No await from here on: a cancellation finds either nothing or all of it.
            lease = Lease(hold)
            _in_use(proxy).add_done_callback(lambda _: lease.hold.leave(lease.outcome))
        except asyncpg.TooManyConnectionsError:
            hold.leave("overload")
            raise
        except BaseException as error:
            hold.fail(error)
            raise
        return proxy, lease


class _Acquisition(PoolAcquireContext):  # type: ignore[misc]
    """asyncpg's own, which also tells what the block came to."""

    connection: Any
    pool: Any
    _lease: Lease

    async def __aenter__(self) -> PoolConnectionProxy:
        if self.connection is not None or self.done:
            raise asyncpg.InterfaceError("a connection is already acquired")
        self.connection, self._lease = await self.pool._check_out(self.timeout)
        return self.connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if error is not None:
            self._lease.note(error)
        await super().__aexit__(kind, error, traceback)
        # Where the connection was lost, the future says so only in the loop's next turn.
        self._lease.hold.leave(self._lease.outcome)


def _in_use(proxy: PoolConnectionProxy) -> Any:
    """The future that is done once the connection is not used any more.

    Raises:
        ConnectionDoesNotExistError: The connection was lost while the pool's ``setup`` ran.
        InterfaceError: The pool was terminated meanwhile.
    """
    # What is handed out in these two cases could never be released.
    holder = proxy._holder
    if holder._con is None:
        holder._release()
        raise asyncpg.ConnectionDoesNotExistError("the connection was lost during the pool's setup")
    if holder._pool._closed:  # before asyncpg 0.32
        holder.terminate()
        raise asyncpg.InterfaceError("pool is closed")
    return holder._in_use
