"""A limit that finds itself, on real databases that stand still, are slow or die under load.

Users ask again and again, more of them than the gate lets in, for what takes a while but hardly any
processor: so the best limit is a high one, on a busy machine, too. The database is disturbed in beats, each
longer than the objective, and between them answers what has come too late: the limit must fall. Then it is
left alone, and the limit must come back. In the end nothing may be lost: no permit, no count.

`TIDEGATE_OUTAGES` repeats all that; the soak does.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from gatekit import PATIENCE, admitted, assert_at_rest
from tidegate import Gate, Shed
from tidegate.demo.postgres_server import PostgresServer

OUTAGES = int(os.environ.get("TIDEGATE_OUTAGES", "1"))
SERVICE = 0.05
OBJECTIVE = 0.5
BEAT = 0.6
START = 32
USERS = 48


class Users:
    """Threads that ask again and again through a gate, each on a connection of its own."""

    def __init__(self, connect: Callable[[], Any], query: str, broken: type[Exception]) -> None:
        self.gate = Gate(
            "db",
            controller="goodput",
            objective=OBJECTIVE,
            prior=START,
            min=4,
            max=USERS,
            # By default an error of its own is an answer of the database, and a fast one.
            outcomes={broken: "overload"},
        )
        self._connect = connect
        self._query = query
        self._broken = broken
        self._over = threading.Event()
        self.failures: list[BaseException] = []

    @contextmanager
    def asking(self) -> Iterator[Gate]:
        threads = [threading.Thread(target=self._ask) for _ in range(USERS)]
        for thread in threads:
            thread.start()
        try:
            yield self.gate
        finally:
            self._over.set()
            for thread in threads:
                thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in threads), "a user hangs"
        assert self.failures == []

    def _ask(self) -> None:
        connection: Any = None
        try:
            while not self._over.is_set():
                try:
                    with self.gate:
                        connection = connection or self._connect()
                        connection.execute(self._query).fetchall()
                except Shed:
                    self._over.wait(0.01)
                except self._broken:
                    if connection is not None:
                        connection.close()
                    connection = None
                    self._over.wait(0.01)
        except BaseException as failure:
            self.failures.append(failure)
        finally:
            if connection is not None:
                connection.close()


def wait_until(gate: Gate, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"{gate.limit_history}, {gate.controller!r}"
        time.sleep(0.001)


def completed(gate: Gate) -> int:
    return sum(gate.stats().released.values())


def falls_and_comes_back(users: Users, disturb: Callable[[], None]) -> None:
    with users.asking() as gate:
        for _ in range(OUTAGES):
            enough = completed(gate) + 2 * START
            wait_until(gate, lambda: completed(gate) >= enough)  # noqa: B023
            before, moves = gate.limit, gate.controller.moves
            deadline = time.monotonic() + PATIENCE
            while gate.limit > before / 2:
                assert time.monotonic() < deadline, f"it stays: {gate.limit_history}"
                inside = gate.in_flight
                disturb()
                late = completed(gate) + inside
                wait_until(gate, lambda: completed(gate) >= late or gate.in_flight == 0)  # noqa: B023
            assert gate.controller.moves > moves
            assert "lost" in [change.cause for change in gate.limit_history]
            wait_until(gate, lambda: gate.limit >= START / 2)
            assert all(4 <= change.limit <= USERS for change in gate.limit_history)
    stats = gate.stats()
    assert admitted(stats) == sum(stats.released.values())
    assert (stats.unmatched_exits, stats.collected) == (0, 0)
    gate.set_limit(START)
    assert_at_rest(gate)


# --- PostgreSQL --------------------------------------------------------------------------------------

QUERY = f"SELECT pg_sleep({SERVICE}) FROM asked"


@pytest.fixture
def server(postgres_server: PostgresServer) -> PostgresServer:
    with psycopg.connect(postgres_server.dsn) as connection:
        connection.execute("CREATE TABLE asked AS SELECT 1 AS answer")
    return postgres_server


@pytest.fixture
def users(server: PostgresServer) -> Users:
    def connect() -> Any:
        return psycopg.connect(server.dsn, autocommit=True, application_name="users", connect_timeout=2)

    return Users(connect, QUERY, psycopg.OperationalError)


def test_postgres_stands_still(server: PostgresServer, users: Users) -> None:
    """As a machine that swaps, or is being snapshotted."""
    with psycopg.connect(server.dsn, autocommit=True) as neighbour:

        def disturb() -> None:
            asked = neighbour.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'users'")
            stopped = [pid for (pid,) in asked]
            try:
                for pid in stopped:
                    os.kill(pid, signal.SIGSTOP)
                time.sleep(BEAT)
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)

        falls_and_comes_back(users, disturb)


def test_postgres_has_a_heavy_neighbour(server: PostgresServer, users: Users) -> None:
    """As a migration that locks the table."""
    with psycopg.connect(server.dsn, autocommit=True) as neighbour:

        def disturb() -> None:
            with neighbour.transaction():
                neighbour.execute("LOCK TABLE asked")
                neighbour.execute("SELECT pg_sleep(%s)", (BEAT,))

        falls_and_comes_back(users, disturb)


def test_postgres_dies(server: PostgresServer, users: Users) -> None:
    def disturb() -> None:
        server.kill()
        time.sleep(BEAT)
        server.start()

    falls_and_comes_back(users, disturb)


# --- SQLite ------------------------------------------------------------------------------------------


def test_sqlite_is_written_to(tmp_path: Path) -> None:
    """By a transaction that locks everybody out."""
    path = tmp_path / "asked.db"
    neighbour = sqlite3.connect(path, isolation_level=None)
    neighbour.executescript("CREATE TABLE asked AS SELECT 1 AS answer")

    def connect() -> Any:
        connection = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)
        connection.create_function("rest", 1, lambda _: time.sleep(SERVICE))
        return connection

    def disturb() -> None:
        neighbour.execute("BEGIN EXCLUSIVE")
        time.sleep(BEAT)
        neighbour.execute("COMMIT")

    users = Users(connect, "SELECT rest(answer) FROM asked", sqlite3.OperationalError)
    falls_and_comes_back(users, disturb)
    neighbour.close()
