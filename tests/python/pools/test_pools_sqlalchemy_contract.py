"""What tidegate.sqlalchemy expects of SQLAlchemy beyond its documented interfaces.

A failure here means: this release of SQLAlchemy has moved something that the gate rests on. Look at where the
message points, mend python/tidegate/sqlalchemy.py, and run the leak matrix.
"""

from __future__ import annotations

import inspect
import sqlite3
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.pool import AssertionPool, AsyncAdaptedQueuePool, NullPool, Pool, QueuePool
from sqlalchemy.pool.base import _ConnectionFairy, _ConnectionRecord
from tidegate.sqlalchemy import TESTED

VERSION = f"SQLAlchemy {sqlalchemy.__version__} (tested: {TESTED})"


class Watched(QueuePool):
    """Notes what passes where the gate sits."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.calls: list[str] = []

    def connect(self) -> Any:
        self.calls.append("connect")
        return super().connect()

    def _do_return_conn(self, record: Any) -> None:
        self.calls.append("return")
        super()._do_return_conn(record)


@pytest.fixture
def pool() -> Watched:
    return Watched(lambda: sqlite3.connect(":memory:"))


def test_each_pool_returns_connections_by_the_method_that_the_gate_overrides() -> None:
    for poolclass in (Pool, QueuePool, AsyncAdaptedQueuePool, NullPool, AssertionPool):
        parameters = list(inspect.signature(poolclass._do_return_conn).parameters)
        assert parameters == ["self", "record"], (
            f"{VERSION}: {poolclass.__name__}._do_return_conn takes {parameters}; see _GatedPool"
        )


@pytest.mark.parametrize(
    "end", ["close", "invalidate", "detach", "forget", "detach and close", "close twice"]
)
def test_a_connection_is_returned_once_however_it_ends(pool: Watched, end: str) -> None:
    connection: Any = pool.connect()
    assert pool.calls == ["connect"]
    if end == "forget":
        del connection
    elif end == "close twice":
        connection.close()
        connection.close()
    else:
        for step in end.split(" and "):
            getattr(connection, step)()
    assert pool.calls == ["connect", "return"], (
        f"{VERSION}: after {end!r} a pool sees {pool.calls}; see _GatedPool in tidegate/sqlalchemy.py and "
        "_ConnectionRecord.checkin and _ConnectionFairy.detach in sqlalchemy/pool/base.py"
    )


def test_a_failed_checkout_is_returned_within_it(pool: Watched) -> None:
    def fail(*_: object) -> None:
        raise ValueError("of a listener")

    sqlalchemy.event.listen(pool, "checkout", fail)
    with pytest.raises(ValueError, match="of a listener"):
        pool.connect()
    assert pool.calls == ["connect", "return"], f"{VERSION}: a failed checkout makes a pool see {pool.calls}"


def test_the_entry_of_a_connection_has_a_place_for_the_lease(pool: Watched) -> None:
    connection = pool.connect()
    assert connection.record_info is connection._connection_record.record_info, (
        f"{VERSION}: the connection's record_info is not its entry's; see _GatedPool.connect"
    )
    entry = connection.record_info
    connection.detach()
    assert connection.record_info is None, (
        f"{VERSION}: a detached connection has an entry; see _GatedPool.connect"
    )
    again = pool.connect()
    assert again.record_info is entry, f"{VERSION}: record_info is not kept with the entry in the pool"
    assert isinstance(again._connection_record, _ConnectionRecord)


def test_a_connection_can_be_made_to_keep_its_permit() -> None:
    where = "see _LastingConnection in tidegate/sqlalchemy.py"
    for name in ("_checkin", "detach"):
        assert inspect.isfunction(getattr(_ConnectionFairy, name, None)), (
            f"{VERSION}: no {name} any more; {where}"
        )
    assert list(inspect.signature(_ConnectionFairy._checkin).parameters) == [
        "self",
        "transaction_was_reset",
    ], f"{VERSION}: _ConnectionFairy._checkin has other parameters; {where}"
    for caller in ("_close_special", "close", "invalidate"):
        assert "self._checkin(" in inspect.getsource(getattr(_ConnectionFairy, caller)), (
            f"{VERSION}: _ConnectionFairy.{caller} goes another way than by _checkin; {where}"
        )


def test_the_dialect_says_which_pool_is_its_own() -> None:
    assert issubclass(DefaultDialect.get_pool_class(sqlalchemy.make_url("sqlite:///file")), QueuePool), (
        f"{VERSION}: DefaultDialect.get_pool_class has changed; see _Plugin in tidegate/sqlalchemy.py"
    )
    url = sqlalchemy.make_url("postgresql+psycopg://")
    assert url.get_dialect(True).is_async, f"{VERSION}: URL.get_dialect(_is_async) has changed; see _Plugin"
