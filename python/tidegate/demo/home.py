"""Where the database lives while the demo runs, and that nothing of it is left."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tidegate.demo.database import Address, DatabaseError


@contextmanager
def home(kind: str, dsn: str | None) -> Generator[Address]:
    """A home for a database of this kind, empty until it is built; gone after the block.

    Args:
        kind: `sqlite` (a file in a temporary folder) or `postgres`.
        dsn: An existing PostgreSQL, where all happens in a schema of its own. None: a server of our own.

    Raises:
        DatabaseError: There is none to be had, or it could not be cleaned up.
    """
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="tidegate-demo-") as folder:
            yield Address(kind, str(Path(folder, "chatbot.db")))
    elif dsn is not None:
        with _schema(dsn, own=False) as address:
            yield address
    else:
        with _server() as server, _schema(server, own=True) as address:
            yield address


@contextmanager
def _server() -> Generator[str]:
    from tidegate.demo.postgres_server import PostgresError, PostgresServer

    try:
        server = PostgresServer()
    except PostgresError as error:
        raise DatabaseError(str(error)) from error
    except OSError as error:
        # Root runs it as nobody, who may not be let into every temporary folder.
        raise DatabaseError(f"PostgreSQL cannot be started by {_server_user()}: {error}") from error
    with server:
        yield server.dsn


def _server_user() -> str:
    return "the user nobody" if os.geteuid() == 0 else "this user"


@contextmanager
def _schema(dsn: str, *, own: bool) -> Generator[Address]:
    from tidegate.demo.postgres import PostgresDatabase, explained, locate

    location = locate(dsn, f"tidegate_demo_{secrets.token_hex(6)}")
    database = PostgresDatabase(location)
    with explained():
        database.create()
        try:
            yield Address("postgres", location, own)
        finally:
            database.remove()
