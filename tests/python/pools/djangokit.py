"""What the tests of Django's engine share: entries of DATABASES, and requests without a server.

A test module imports the fixture `register` by name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django
import pytest
from django.conf import settings
from django.db import close_old_connections, connections
from gatekit import in_thread
from tidegate import Gate

if not settings.configured:  # as elsewhere: one process has one configuration
    settings.configure(ALLOWED_HOSTS=["testserver"], SECRET_KEY="for tests")
    django.setup()

Entry = dict[str, Any]
Register = Callable[..., Any]

current: Gate  # the test's gate, where the settings name it
THE_GATE = f"{__name__}.current"


@pytest.fixture
def register(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    """Add a database to DATABASES, for the time of the test. Returns this thread's connection to it."""
    monkeypatch.setattr(sys.modules[__name__], "current", gate, raising=False)
    before = dict(connections.settings)

    def register(entry: Entry, alias: str = "gated") -> Any:
        known = connections.configure_settings({"default": {}, alias: {"TIDEGATE": THE_GATE, **entry}})
        connections.settings[alias] = known[alias]
        return connections[alias]

    yield register
    for alias in set(connections.settings) - set(before):
        connection = connections[alias]
        connection.close()
        pool = getattr(connection, "_connection_pools", {}).pop(alias, None)
        if pool is not None:
            pool.close()
        del connections[alias]
        del connections.settings[alias]


def postgresql(dsn: str, **more: Any) -> Entry:
    url = urlsplit(dsn)
    return {
        "ENGINE": "tidegate.django.postgresql",
        "NAME": url.path[1:],
        "USER": url.username,
        "HOST": url.hostname,
        "PORT": str(url.port),
        **more,
    }


def pooled(dsn: str, **options: Any) -> Entry:
    return postgresql(dsn, OPTIONS={"pool": {"min_size": 0, "max_size": 2, **options}})


def sqlite3(folder: Path) -> Entry:
    return {"ENGINE": "tidegate.django.sqlite3", "NAME": str(folder / "db.sqlite3")}


def select(connection: Any, what: str = "1") -> Any:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {what}")
        return cursor.fetchone()[0]


def in_request(function: Callable[[], Any]) -> Any:
    """As a server's thread runs it: what is open at the end is closed, whatever happened."""

    def run() -> Any:
        close_old_connections()
        try:
            return function()
        finally:
            close_old_connections()

    return in_thread(run)
