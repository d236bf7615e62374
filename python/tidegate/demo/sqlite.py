"""The chatbot's messages in SQLite, from the standard library."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext

from tidegate.demo import corpus

_SCHEMA = """
CREATE TABLE message (id INTEGER PRIMARY KEY, conversation INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX message_conversation ON message (conversation, id);
"""

_HISTORY = "SELECT body FROM message WHERE conversation = ? ORDER BY id DESC LIMIT 10"

# One statement that reads much and returns little. SQLite lets go of Python's interpreter lock while it
# works, so the cost is the database's and not the interpreter's.
_SEARCH = """
SELECT body FROM message WHERE id <= ?4
ORDER BY (body LIKE ?1) + (body LIKE ?2) + (body LIKE ?3) DESC, id DESC LIMIT 5
"""

# Larger than the file: pages are read in place and not copied into each connection's own cache.
_MMAP_BYTES = 1 << 28


class SqliteConnection:
    """One connection; it belongs to the thread that opened it."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute(f"PRAGMA mmap_size = {_MMAP_BYTES}")
        self._connection.execute("PRAGMA query_only = ON")

    def history(self, conversation: int) -> list[str]:
        """See `database.Connection`."""
        rows = self._connection.execute(_HISTORY, (conversation,)).fetchall()
        return [body for (body,) in rows]

    def search(self, terms: tuple[str, str, str], depth: int) -> list[str]:
        """See `database.Connection`."""
        patterns = [f"%{term}%" for term in terms]
        rows = self._connection.execute(_SEARCH, (*patterns, depth)).fetchall()
        return [body for (body,) in rows]

    def stopwatch(self) -> float:
        """See `database.Connection`. A query runs in the thread that asks."""
        return time.thread_time()

    def close(self) -> None:
        """See `database.Connection`."""
        self._connection.close()


class SqlitePool:
    """A connection for each thread, which keeps it: SQLite's are cheap to hold and bound to their thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._own = threading.local()

    @contextmanager
    def lend(self) -> Generator[SqliteConnection]:
        """See `database.Pool`."""
        if not hasattr(self._own, "connection"):
            self._own.connection = SqliteConnection(self._path)
        yield self._own.connection


class SqliteDatabase:
    """One database file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def build(self) -> None:
        """See `database.Database`."""
        connection = sqlite3.connect(self._path)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
            connection.executemany(
                "INSERT INTO message (conversation, body) VALUES (?, ?)", corpus.messages()
            )
            connection.commit()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()

    def connect(self) -> SqliteConnection:
        """See `database.Database`."""
        return SqliteConnection(self._path)

    def pool(self, arm: str, workers: int) -> SqlitePool:  # noqa: ARG002
        """See `database.Database`."""
        return SqlitePool(self._path)

    def watch(self) -> AbstractAsyncContextManager[Sequence[int]]:
        """See `database.Database`."""
        return nullcontext(())

    def clear(self) -> None:
        """See `database.Database`. A query ends with its process."""
