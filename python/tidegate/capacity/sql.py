"""A SQL statement on a DSN as a target.

PostgreSQL by psycopg's asynchronous connections; one that is given up on is cancelled at the server. SQLite
by the standard library, in threads; one that is given up on is interrupted. Each statement in flight has a
connection of its own, kept for the next one, and commits by itself. Parameters come from the data file by
their columns' names, in the database's own style: `%(name)s` in PostgreSQL, `:name` in SQLite.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tidegate.capacity.here import Here
from tidegate.capacity.rows import NUMBER, Rows
from tidegate.capacity.target import TargetError, in_few_words
from tidegate.capacity.url import without_password

if TYPE_CHECKING:
    import psycopg

# Left for those who have to look after the database while it is tested.
_SPARE_CONNECTIONS = 5
_CANCEL_S = 2.0


class PostgresTarget:
    """Runs a statement on PostgreSQL."""

    def __init__(self, dsn: str, statement: str, rows: Rows) -> None:
        self._dsn = dsn
        self._statement = statement
        self._rows = rows
        self._free: list[psycopg.AsyncConnection[Any]] = []
        self._all: set[psycopg.AsyncConnection[Any]] = set()
        self._most: int | None = None

    async def open(self) -> None:
        """Connect once, and count what the server has left."""
        import psycopg

        try:
            connection = await self._connect()
            row = await (
                await connection.execute(
                    "SELECT current_setting('max_connections')::int"
                    " - coalesce(current_setting('superuser_reserved_connections', true), '3')::int"
                    " - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
                )
            ).fetchone()
        except (psycopg.Error, UnicodeError) as error:  # the latter of a host that can be no name
            raise TargetError(explain_postgres(str(error), without_password(self._dsn))) from error
        assert row is not None
        self._most = max(1, row[0] + 1 - _SPARE_CONNECTIONS)
        self._free.append(connection)

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        import psycopg

        connection = await psycopg.AsyncConnection.connect(
            self._dsn, autocommit=True, application_name="tidegate capacity", connect_timeout=10
        )
        self._all.add(connection)
        return connection

    async def ask(self, number: int) -> str | None:
        """Run it once and read all its rows."""
        import psycopg

        connection = None
        try:
            connection = self._free.pop() if self._free else await self._connect()
            # Without parameters a percent sign is one.
            row = {NUMBER: number, **self._rows[number]} if "%(" in self._statement else None
            cursor = await connection.execute(self._statement.encode(), row)
            if cursor.description is not None:
                await cursor.fetchall()
        except psycopg.Error as error:
            return in_few_words(error)
        finally:
            if connection is not None:
                await self._keep(connection)
        return None

    async def _keep(self, connection: psycopg.AsyncConnection[Any]) -> None:
        from psycopg.pq import TransactionStatus

        if not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE:
            self._free.append(connection)
            return
        self._all.discard(connection)
        await connection.close()

    async def close(self) -> None:
        """Close the connections; what still runs is cancelled first, or the server would go on with it."""
        from psycopg.pq import TransactionStatus

        busy = [
            connection
            for connection in self._all
            if not connection.closed and connection.info.transaction_status is TransactionStatus.ACTIVE
        ]
        cancelling = (connection.cancel_safe(timeout=_CANCEL_S) for connection in busy)
        await asyncio.gather(*cancelling, return_exceptions=True)
        for connection in list(self._all):  # requests that end meanwhile take theirs out
            await connection.close()

    @property
    def most_in_flight(self) -> int | None:
        """As many as the server has connections left, less some to look after it."""
        return self._most

    @property
    def overhead(self) -> float:
        """Not known."""
        return 0.0

    def describe(self) -> Mapping[str, str]:
        """Where, and the statement."""
        return {
            "kind": "postgres",
            "database": without_password(self._dsn),
            "statement": " ".join(self._statement.split()),
        }


class SqliteTarget(Here):
    """Runs a statement on SQLite."""

    def __init__(
        self, path: str, statement: str, rows: Rows, threads: int, prepare_thread: Callable[[], None]
    ) -> None:
        self._path = path
        self._statement = statement
        self._rows = rows
        super().__init__(threads, prepare_thread)
        self._free: list[sqlite3.Connection] = []

    async def open(self) -> None:
        """Open the file, which must be there, and have the statement looked at."""
        try:
            connection = self._connect()
            # All of it but the running: names of tables, and of parameters.
            connection.execute(f"EXPLAIN {self._statement}", self._row(0)).fetchall()
        except sqlite3.Error as error:
            raise TargetError(
                f"SQLite says of {self._path}: {error}. Check the file, the statement and its parameters."
            ) from error
        self._free.append(connection)

    def _row(self, number: int) -> Mapping[str, Any]:
        return {NUMBER: number, **self._rows[number]}

    def _connect(self) -> sqlite3.Connection:
        uri = f"{Path(self._path).absolute().as_uri()}?mode=rw"
        return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)

    async def ask(self, number: int) -> str | None:
        """Run it once and read all its rows."""
        connection = self._free.pop() if self._free else self._connect()
        try:
            await self._in_thread(
                lambda: connection.execute(self._statement, self._row(number)).fetchall(),
                on_cancel=connection.interrupt,
            )
        except sqlite3.Error as error:
            return in_few_words(error)
        finally:
            self._free.append(connection)
        return None

    async def close(self) -> None:
        """Close the connections that nobody uses."""
        for connection in self._free:
            connection.close()
        self._end_threads()

    @property
    def most_in_flight(self) -> int | None:
        """As many as there are threads."""
        return self._threads

    def describe(self) -> Mapping[str, str]:
        """Where, and the statement."""
        return {
            "kind": "sqlite",
            "database": self._path,
            "statement": " ".join(self._statement.split()),
            "sqlite": sqlite3.sqlite_version,
        }


def sqlite_path(dsn: str) -> str:
    """The file of `sqlite:///relative.db` or `sqlite:////absolute.db`.

    Raises:
        TargetError: It names none.
    """
    parts = urlsplit(dsn)
    path = unquote(parts.path)[1:]
    if parts.netloc or not path or path == ":memory:":
        raise TargetError(
            f"{dsn} names no SQLite file: write sqlite:///orders.db, or sqlite:////var/orders.db with a full "
            "path."
        )
    return path


def explain_postgres(said: str, dsn: str) -> str:
    """Why there is no connection, and what to do."""
    line = " ".join(said.split())
    if "Connection refused" in line:
        do = "Nobody listens there: start the server, or check host and port."
    elif "authentication failed" in line or "no password supplied" in line:
        do = "The credentials are wrong: check user and password in the DSN, or PGPASSWORD."
    elif "does not exist" in line:
        do = "Check the names of database and user in the DSN."
    elif "too many clients" in line or "remaining connection slots" in line:
        do = "The server has no connection left: free some, or raise its max_connections."
    else:
        do = "Check the DSN, and that the server can be reached from here."
    return f"PostgreSQL at {dsn} cannot be used: {line}. {do}"
