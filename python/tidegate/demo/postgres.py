"""The chatbot's messages in PostgreSQL, through psycopg.

Everything stands in one schema, and every session of the demo's other processes bears the schema's name as
its `application_name`, so that they can be told from whatever else the server does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier
from psycopg_pool import ConnectionPool

from tidegate.demo import corpus
from tidegate.demo.database import DatabaseError
from tidegate.demo.job import make_way

# What a query costs is not for the server's settings to change.
_SETTINGS = {"jit": "off", "max_parallel_workers_per_gather": "0"}
_CONNECT_SECONDS = 10
_POOL_SECONDS = 30

# Nothing here is worth a write-ahead log. The collation "C" makes LIKE cost the same everywhere.
_TABLE = """
CREATE UNLOGGED TABLE message (
    id integer PRIMARY KEY, conversation integer NOT NULL, body text COLLATE "C" NOT NULL
)
"""
_INDEX = "CREATE INDEX message_conversation ON message (conversation, id)"

_HISTORY = "SELECT body FROM message WHERE conversation = %s ORDER BY id DESC LIMIT 10"

_SEARCH = """
SELECT body FROM message WHERE id <= %s
ORDER BY (body LIKE %s)::int + (body LIKE %s)::int + (body LIKE %s)::int DESC, id DESC LIMIT 5
"""

_ACTIVE = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND state = 'active'"
_SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
_TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
_FREE = """
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""

_WATCH_SECONDS = 0.1
_CLEAR_SECONDS = 10.0

# At the start, and at most. Ungated, the pool is no limit: there are more connections than threads. Stock is
# what SQLAlchemy makes: 5, and 10 more; who finds none waits. Behind a limit, each thread has one.
_POOLS = {"ungated": (64, 64), "stock": (5, 15)}

# The largest pool, the parent's own sessions, and a few to spare.
_CONNECTIONS_NEEDED = 70


class PostgresConnection:
    """One session.

    Args:
        connection: psycopg's.
        own: The server is the demo's own and on this machine.
    """

    def __init__(self, connection: psycopg.Connection[Any], *, own: bool = False) -> None:
        self._connection = connection
        self._own = own

    def history(self, conversation: int) -> list[str]:
        """See `database.Connection`."""
        return [body for (body,) in self._connection.execute(_HISTORY, (conversation,))]

    def search(self, terms: tuple[str, str, str], depth: int) -> list[str]:
        """See `database.Connection`."""
        patterns = [f"%{term}%" for term in terms]
        return [body for (body,) in self._connection.execute(_SEARCH, (depth, *patterns))]

    def stopwatch(self) -> float:
        """See `database.Connection`. What a server elsewhere takes, only the clock on the wall can say."""
        usage = Path(f"/proc/{self._connection.info.backend_pid}/schedstat")
        if not (self._own and usage.exists()):
            return time.perf_counter()
        nanoseconds, *_ = usage.read_text().split()
        return time.thread_time() + int(nanoseconds) / 1e9

    def close(self) -> None:
        """See `database.Connection`."""
        self._connection.close()


class PostgresPool:
    """psycopg's pool: from `least` sessions to `most`; who finds none waits for one."""

    def __init__(
        self, location: str, least: int, most: int, configure: Callable[[psycopg.Connection[Any]], None]
    ) -> None:
        self._pool = ConnectionPool(
            location,
            min_size=least,
            max_size=most,
            kwargs={"autocommit": True},
            configure=configure,
            open=True,
        )
        self._pool.wait(_POOL_SECONDS)

    @contextmanager
    def lend(self) -> Generator[PostgresConnection]:
        """See `database.Pool`."""
        with self._pool.connection() as connection:
            yield PostgresConnection(connection)

    def close(self) -> None:
        """Close its sessions."""
        self._pool.close()


class PostgresDatabase:
    """One schema.

    Args:
        location: A connection string as `locate` makes it.
        own: The server is the demo's own and on this machine.
    """

    def __init__(self, location: str, *, own: bool = False) -> None:
        self._location = location
        self._own = own
        self.name = str(conninfo_to_dict(location)["application_name"])

    def create(self) -> None:
        """Create the schema, once it is sure that the server is there and large enough."""
        with self._own_session() as connection:
            _usable(connection, self.name)
            connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(self.name)))

    def remove(self) -> None:
        """End the demo's sessions and drop the schema with all that is in it."""
        self.clear()
        with self._own_session() as connection:
            connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(self.name)))

    def build(self) -> None:
        """See `database.Database`."""
        with self._own_session() as connection:
            connection.execute(_TABLE)
            with connection.cursor() as cursor, cursor.copy("COPY message FROM STDIN") as copy:
                for number, message in enumerate(corpus.messages(), start=1):
                    copy.write_row((number, *message))
            connection.execute(_INDEX)
            # Now, and not by whoever reads first or by a vacuum in the background.
            connection.execute("VACUUM (FREEZE, ANALYZE) message")

    def connect(self) -> PostgresConnection:
        """See `database.Database`."""
        connection = psycopg.connect(self._location, autocommit=True)
        self._prepare(connection)
        return PostgresConnection(connection, own=self._own)

    def pool(self, arm: str, workers: int) -> PostgresPool:
        """See `database.Database`."""
        least, most = pool_size(arm, workers)
        return PostgresPool(self._location, least, most, self._prepare)

    @asynccontextmanager
    async def watch(self) -> AsyncGenerator[Sequence[int]]:
        """See `database.Database`."""
        connection = await psycopg.AsyncConnection.connect(self._parent, autocommit=True)
        seen: list[int] = []

        async def look() -> None:
            while True:
                cursor = await connection.execute(_ACTIVE, (self.name,))
                seen.extend(count for (count,) in await cursor.fetchall())
                await asyncio.sleep(_WATCH_SECONDS)

        async with connection:
            looking = asyncio.create_task(look())
            try:
                yield seen
            finally:
                looking.cancel()
                with suppress(asyncio.CancelledError):
                    await looking

    def make_way(self) -> None:
        """Let all sessions of the demo's other processes stand back, if they are on this machine."""
        if self._own:
            with self._own_session() as connection:
                for (pid,) in connection.execute(_SESSIONS, (self.name,)):
                    make_way(pid)

    def clear(self) -> None:
        """See `database.Database`. The server notices only when it answers that nobody is there."""
        deadline = time.monotonic() + _CLEAR_SECONDS
        with self._own_session() as connection:
            while connection.execute(_TERMINATE, (self.name,)).rowcount:
                if time.monotonic() > deadline:
                    raise DatabaseError(f"sessions of {self.name} did not end when they were terminated")
                time.sleep(0.01)

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Read a little, so that no request finds a session that knows no schema."""
        PostgresConnection(connection).history(0)
        if self._own:
            make_way(connection.info.backend_pid)

    def _own_session(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._parent, autocommit=True)

    @property
    def _parent(self) -> str:
        """For the sessions of the parent process, which go by another name."""
        return make_conninfo(self._location, application_name=f"{self.name}_parent")


def pool_size(arm: str, workers: int) -> tuple[int, int]:
    """The sessions that a backend with so many threads has for `arm`: at the start, and at most."""
    return _POOLS.get(arm, (workers, workers))


@contextmanager
def explained() -> Generator[None]:
    """Turn what psycopg raises in the block into a DatabaseError."""
    try:
        yield
    except psycopg.Error as error:
        raise DatabaseError(f"PostgreSQL: {str(error).strip()}") from error


def locate(dsn: str, name: str) -> str:
    """A connection string for the sessions of the demo that is called `name`, on the server of `dsn`.

    Raises:
        DatabaseError: `dsn` is malformed. It is not repeated: parts of a password may stand in any place.
    """
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        given = {}
    ports = str(given.get("port") or "").split(",")
    places = f"{given.get('host', '')}{given.get('dbname', '')}"
    if not given or "@" in places or not all(port.isdecimal() for port in ports if port):
        raise DatabaseError(
            "--dsn is not a PostgreSQL URL such as postgresql://user@host:5432/database "
            "(in a password, write @ as %40, / as %2F, % as %25)"
        )
    settings = {**_SETTINGS, "search_path": name}
    options = [str(given.get("options") or ""), *(f"-c {key}={value}" for key, value in settings.items())]
    given.setdefault("connect_timeout", _CONNECT_SECONDS)
    return make_conninfo("", **{**given, "application_name": name, "options": " ".join(options).strip()})


def _usable(connection: psycopg.Connection[Any], schema: str) -> None:
    """Refuse a server on which the demo would fail halfway, or leave its schema."""
    if connection.execute("SELECT current_setting('search_path')").fetchone() != (schema,):
        raise DatabaseError("--dsn leads to a pooler that drops settings: name the PostgreSQL behind it")
    (free,) = connection.execute(_FREE).fetchone() or (0,)
    if free < _CONNECTIONS_NEEDED:
        raise DatabaseError(
            f"PostgreSQL has room for {free} more connections and the demo needs {_CONNECTIONS_NEEDED}: "
            "raise max_connections, or leave out --dsn"
        )
