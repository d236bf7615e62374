"""What Django's DatabaseWrapper calls, and when, is as the engine takes it to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("django", reason="Django is not installed", exc_type=ImportError)
pytest.importorskip("psycopg", reason="psycopg is not installed", exc_type=ImportError)

import django
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base as postgresql_base
from django.db.backends.sqlite3 import base as sqlite3_base
from django.db.utils import ConnectionHandler
from djangokit import pooled, postgresql, sqlite3

MOVED = (
    f"Django {django.__version__} has moved what tidegate.django.engine rests on: compare its "
    "django/db/backends/base/base.py with that of 5.2 at {}, then change python/tidegate/django/engine.py"
)


def noting(base: type[Any]) -> type[Any]:
    """The wrapper, with a list of what was called and whether it had a connection then."""

    class Noting(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.calls: list[tuple[str, bool]] = []

        def connect(self) -> None:
            self.calls.append(("connect", self.connection is not None))
            super().connect()

        def get_new_connection(self, conn_params: Any) -> Any:
            self.calls.append(("get_new_connection", self.connection is not None))
            return super().get_new_connection(conn_params)

        def init_connection_state(self) -> None:
            self.calls.append(("init_connection_state", self.connection is not None))
            super().init_connection_state()

        def _close(self) -> None:
            self.calls.append(("_close", self.connection is not None))
            super()._close()

    return Noting


@pytest.mark.parametrize("kind", ["postgresql", "postgresql-pool", "sqlite3"])
def test_connect_and_close(dsn: str, tmp_path: Path, kind: str) -> None:
    if kind == "sqlite3":
        entry, base = sqlite3(tmp_path), sqlite3_base
    else:
        entry, base = (pooled if kind == "postgresql-pool" else postgresql)(dsn), postgresql_base
    entry = ConnectionHandler({"default": entry}).settings["default"]
    wrapper = noting(base.DatabaseWrapper)(entry, "contract")
    for _ in range(2):
        wrapper.ensure_connection()
        wrapper.ensure_connection()
        wrapper.close()
        assert wrapper.connection is None, MOVED.format("close")
        wrapper.close()
    once = [
        ("connect", False),
        ("get_new_connection", False),
        ("init_connection_state", True),
        ("_close", True),
    ]
    assert wrapper.calls == once * 2, MOVED.format("ensure_connection, connect and close")
    if kind == "postgresql-pool":
        wrapper.close_pool()


def test_who_creates_databases(dsn: str) -> None:
    entry = ConnectionHandler({"default": postgresql(dsn)}).settings["default"]
    wrapper = postgresql_base.DatabaseWrapper(entry, "contract")
    with wrapper._nodb_cursor() as cursor:
        assert cursor.db.alias == NO_DB_ALIAS, MOVED.format("_nodb_cursor")
