"""A gate in front of the connection pool of a SQLAlchemy engine, sync or asyncio.

    engine = create_engine(url, **gated(gate))
    engine = create_async_engine(url, **gated(gate))

A checkout takes a permit before it waits for the pool, and the permit goes when the connection is returned,
invalidated, detached or collected. What does not fit raises Shed, unwrapped, also through ORM sessions.

Besides documented interfaces this rests on `Pool._do_return_conn`, which every return passes once, on
`_ConnectionFairy._checkin` and ``detach``, and on ``_is_async``, by which engines tell their kind.
``tests/python/pools/test_pools_sqlalchemy_contract.py`` holds them to it.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast

from sqlalchemy import event, exc
from sqlalchemy.dialects import plugins
from sqlalchemy.engine import URL, CreateEnginePlugin, Engine, ExceptionContext
from sqlalchemy.pool import (
    ConnectionPoolEntry,
    Pool,
    PoolProxiedConnection,
    SingletonThreadPool,
    StaticPool,
)
from sqlalchemy.pool.base import _ConnectionFairy  # pyright: ignore[reportPrivateUsage]

from tidegate._arguments import check_gate
from tidegate._errors import ConfigError, Shed
from tidegate._held import check_out
from tidegate._lease import Lease
from tidegate._native import Gate

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from sqlalchemy.engine.default import DefaultDialect

__all__ = ["TESTED", "gated", "gated_pool_class"]

TESTED = "SQLAlchemy 2.0.0, 2.0.58, 2.1.0 and 2.1.9"

HoldUntil = Literal["return", "close"]

_PLUGIN = "tidegate"
_LEASE = "tidegate.lease"


class _Options(NamedTuple):
    gate: Gate
    hold_until: HoldUntil


def gated(gate: Gate, *, hold_until: HoldUntil = "return") -> dict[str, Any]:
    """The arguments that put a gate in front of an engine's pool.

    For ``create_engine`` and ``create_async_engine``. The pool is the dialect's own, or the one of the
    engine's ``poolclass``; several engines may share the gate.

    Args:
        gate: The gate. Its limit should exceed ``pool_size + max_overflow`` by what may wait.
        hold_until: When a connection that is detached from its pool gives its permit back: "return", at
            once, or "close". It matters to nothing else.

    Raises:
        TypeError: The gate is none.
        ConfigError: An option is wrong. The engine's constructor raises it for a pool that cannot be
            gated: ``StaticPool``, ``SingletonThreadPool`` (SQLite's ``:memory:``), or one given as ``pool``.
    """
    return {"plugins": [_PLUGIN], _PLUGIN: _options(gate, hold_until)}


def gated_pool_class(poolclass: type[Pool], gate: Gate, *, hold_until: HoldUntil = "return") -> type[Pool]:
    """A subclass of a pool class with a gate in front, for pools that are made by hand.

    Args:
        poolclass: A pool that hands a connection to one user at a time.
        gate: The gate.
        hold_until: As for `gated`.

    Raises:
        TypeError: The gate is none.
        ConfigError: The class or an option is wrong.
    """
    options = _options(gate, hold_until)
    if not (isinstance(poolclass, type) and issubclass(poolclass, Pool)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"poolclass must be a SQLAlchemy Pool class, got {poolclass!r}")
    name = poolclass.__name__
    if issubclass(poolclass, StaticPool | SingletonThreadPool):
        raise ConfigError(
            f"poolclass must give a connection to one user at a time, got {name}, which shares it (it is "
            "SQLite's for ':memory:'): use a database file, or a poolclass such as QueuePool or NullPool"
        )
    if issubclass(poolclass, _GatedPool):
        raise ConfigError(f"poolclass must have no gate yet, got {name}")
    # A class, since a pool recreates itself as its class with SQLAlchemy's own arguments; and in its base's
    # module, since loggers go by that.
    namespace = {"__module__": poolclass.__module__, "_tidegate": options}
    return cast("type[Pool]", type(f"Gated{name}", (_GatedPool, poolclass), namespace))


def _options(gate: Gate, hold_until: HoldUntil) -> _Options:
    check_gate(gate)
    if hold_until not in ("return", "close"):
        raise ConfigError(f"hold_until must be 'return' or 'close', got {hold_until!r}")
    return _Options(gate, hold_until)


class _GatedPool(Pool):
    """What a gated pool class has before its base."""

    _tidegate: ClassVar[_Options]

    def connect(self) -> PoolProxiedConnection:
        gate, hold_until = self._tidegate
        hold = check_out(gate)
        try:
            connection = super().connect()
            entry = connection.record_info
            if entry is None:  # a listener has detached it
                hold.leave()
            else:
                # In the place of one that has ended, if there is any.
                entry[_LEASE] = Lease(hold)
                if hold_until == "close":
                    connection.__class__ = _LastingConnection
        except exc.TimeoutError:  # of the pool
            hold.leave("overload")
            raise
        except BaseException as error:
            hold.fail(error)
            raise
        return connection

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        # Read before the record is back: then it may belong to the next user, with the next lease.
        lease = _lease_in(record.record_info)
        try:
            super()._do_return_conn(record)
        finally:
            if lease is not None:
                lease.hold.leave(lease.outcome)


class _LastingConnection(_ConnectionFairy):
    """A connection that keeps its permit when it is detached, until it is closed or collected."""

    __slots__ = ()

    def detach(self) -> None:
        lease = _lease_in(self.record_info)
        further = None if lease is None else lease.hold.join()
        if further is not None:
            self.__dict__[_LEASE] = Lease(further)
        super().detach()

    def _checkin(self, transaction_was_reset: bool = False) -> None:
        try:
            super()._checkin(transaction_was_reset)
        finally:
            lease = _lease_in(self.__dict__)
            if lease is not None:
                lease.hold.leave(lease.outcome)


class _Plugin(CreateEnginePlugin):
    """Gates the pool class that the engine is about to use.

    A plugin, since the choice of the pool is the dialect's and may depend on the URL, and a plugin is what
    sees both before the pool is made.
    """

    def __init__(self, url: URL, kwargs: dict[str, Any]) -> None:
        super().__init__(url, kwargs)
        options = kwargs.pop(_PLUGIN, None)
        if not isinstance(options, _Options):
            raise ConfigError("the plugin 'tidegate' needs a gate: create_engine(url, **gated(gate))")
        if kwargs.get("pool") is not None:
            raise ConfigError("pool must not be given with a gate: give poolclass, or use gated_pool_class")
        poolclass = kwargs.get("poolclass")
        if poolclass is None:
            dialect = cast("type[DefaultDialect]", url.get_dialect(kwargs.get("_is_async", False)))
            poolclass = dialect.get_pool_class(url)
        kwargs["poolclass"] = gated_pool_class(poolclass, options.gate, hold_until=options.hold_until)

    def update_url(self, url: URL) -> URL:
        return url

    def engine_created(self, engine: Engine) -> None:
        event.listen(engine, "handle_error", _note_error, retval=True)


def _note_error(context: ExceptionContext) -> BaseException | None:
    """An error of the driver, or a cancellation, in the middle of the work on a connection.

    Or what a lost connection cannot be replaced for. SQLAlchemy wraps that, unless it gets what to raise.
    """
    error = context.original_exception
    if isinstance(error, Shed) and context.sqlalchemy_exception is not None:
        return copy(error)  # since the original becomes its cause
    connection = context.connection
    # Of one that has lost its pooled connection, the property would check out another.
    if connection is None or connection.closed or connection.invalidated:
        return None
    lease = _lease_in(connection.connection.record_info)
    if lease is not None:
        lease.note(error)
    return None


def _lease_in(place: MutableMapping[Any, Any] | None) -> Lease | None:
    return None if place is None else cast("Lease | None", place.get(_LEASE))


plugins.register(_PLUGIN, __name__, _Plugin.__name__)
