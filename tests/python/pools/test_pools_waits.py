"""Waits of a real PostgreSQL: what counts as one, and that nobody waits for whoever asks."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from gatekit import in_child, until
from tidegate import ConfigError
from tidegate.demo.postgres_server import PostgresServer
from tidegate.postgres import Waits, _pause, pressure

FAST = 0.1  # the least interval


@pytest.fixture
def waits(dsn: str) -> Iterator[Waits]:
    waits = Waits(dsn, interval=FAST, floor=1)
    yield waits
    waits.close()
    until(lambda: not looking())


def looking() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tidegate-postgres-waits"]


def sessions(dsn: str) -> list[int]:
    """The process numbers of the looks' sessions."""
    with psycopg.connect(dsn) as connection:
        asked = "SELECT pid FROM pg_stat_activity WHERE application_name = 'tidegate'"
        return [pid for (pid,) in connection.execute(asked)]


@contextmanager
def at_work(dsn: str, *queries: str) -> Iterator[None]:
    """A session for each query, until the block ends."""
    connections = [psycopg.connect(dsn, autocommit=True) for _ in queries]

    def run(connection: Any, query: str) -> None:
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(query)

    threads = [threading.Thread(target=run, args=each) for each in zip(connections, queries, strict=True)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for connection, thread in zip(connections, threads, strict=True):
            while thread.is_alive():  # one that has not begun yet cannot be cancelled
                connection.cancel_safe()
                thread.join(0.01)
            connection.close()


@contextmanager
def locked(dsn: str, sessions: int) -> Iterator[None]:
    """So many sessions that wait for a lock that another holds."""
    with psycopg.connect(dsn, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(1)")
        with at_work(dsn, *["SELECT pg_advisory_lock(1)"] * sessions):
            yield


def becomes(waits: Waits, holds: Callable[[float | None], bool]) -> None:
    until(lambda: holds(waits()))


# --- what it reads -----------------------------------------------------------------------------------


def test_looks_are_no_closer_than_the_interval_and_failures_make_them_rarer() -> None:
    assert [_pause(1.0, failures) for failures in (0, 1, 4, 5, 10**6)] == [1.0, 2.0, 16.0, 30.0, 30.0]
    assert [_pause(60.0, failures) for failures in (0, 1, 5)] == [60.0, 60.0, 60.0]


@pytest.mark.parametrize(
    ("working", "waiting", "cores", "floor", "expected"),
    [
        (0, 0, None, 8, 0.0),
        (0, 2, None, 8, 0.25),
        (2, 6, None, 8, 0.75),
        (10, 30, None, 8, 0.75),
        (40, 0, None, 8, 0.0),
        (40, 0, 4, 8, 0.9),
        (4, 0, 4, 8, 0.0),
        (10, 10, 4, 8, 0.8),
        (0, 100, 1, 1, 1.0),
    ],
)
def test_the_pressure_is_the_share_that_waits(
    working: int, waiting: int, cores: int | None, floor: int, expected: float
) -> None:
    assert pressure(working, waiting, cores, floor) == pytest.approx(expected)


def test_an_idle_database_is_at_zero_and_its_own_look_does_not_count(waits: Waits) -> None:
    assert waits() is None, "nothing is known before the first look"
    becomes(waits, lambda value: value == 0.0)


def test_who_waits_for_a_lock_counts_and_who_sleeps_does_not(dsn: str, waits: Waits) -> None:
    sleeping = ["SELECT pg_sleep(60)"] * 2
    with locked(dsn, 2), at_work(dsn, *sleeping):
        becomes(waits, lambda value: value == 1.0)
    becomes(waits, lambda value: value == 0.0)


def test_more_at_work_than_processors_is_pressure_too(dsn: str) -> None:
    busy = ["SELECT count(*) FROM generate_series(1, 1000000000)"] * 3
    with ExitStack() as stack:
        waits = Waits(dsn, interval=FAST, floor=1, cores=1)
        stack.callback(waits.close)
        stack.enter_context(at_work(dsn, *busy))
        becomes(waits, lambda value: value == pytest.approx(2 / 3))


# --- that nobody waits for it ------------------------------------------------------------------------


def test_one_thread_and_one_session_serve_all_who_call(dsn: str, waits: Waits) -> None:
    assert sessions(dsn) == []
    threads = [threading.Thread(target=waits) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    becomes(waits, lambda value: value is not None)
    assert len(looking()) == 1 and len(sessions(dsn)) == 1
    waits.close()
    until(lambda: sessions(dsn) == [])
    becomes(waits, lambda value: value is not None)  # and it begins again


def test_whoever_forgets_it_ends_it(dsn: str) -> None:
    waits = Waits(dsn, interval=FAST)
    becomes(waits, lambda value: value is not None)
    del waits
    gc.collect()
    until(lambda: not looking() and sessions(dsn) == [])


def test_a_call_never_waits_for_a_database_that_stands_still(postgres_server: PostgresServer) -> None:
    dsn = postgres_server.dsn
    waits = Waits(dsn, interval=FAST)
    becomes(waits, lambda value: value is not None)
    (session,) = sessions(dsn)
    os.kill(session, signal.SIGSTOP)
    try:
        slowest = 0.0

        def is_unknown() -> bool:
            nonlocal slowest
            before = time.perf_counter()
            unknown = waits() is None
            slowest = max(slowest, time.perf_counter() - before)
            return unknown

        until(is_unknown)
        assert slowest < 1.0
    finally:
        os.kill(session, signal.SIGCONT)
    becomes(waits, lambda value: value is not None)
    waits.close()
    until(lambda: not looking())


def test_a_database_that_dies_is_unknown_until_it_is_back_and_that_is_told_once(
    postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    waits = Waits(postgres_server.dsn, interval=FAST)
    becomes(waits, lambda value: value is not None)
    postgres_server.kill()
    becomes(waits, lambda value: value is None)
    postgres_server.start()
    becomes(waits, lambda value: value is not None)
    waits.close()
    until(lambda: not looking())
    told = [record.getMessage().split()[0] for record in caplog.records]
    assert told == ["event=postgres_waits_unknown", "event=postgres_waits_known"]


def test_a_password_that_changes_is_asked_for_at_each_connection(dsn: str) -> None:
    asked: list[str] = []

    def conninfo() -> str:
        asked.append(dsn)
        return dsn if len(asked) > 1 else "nonsense secret"

    waits = Waits(conninfo, interval=FAST)
    becomes(waits, lambda value: value is not None)
    assert len(asked) == 2
    waits.close()
    until(lambda: not looking())


def test_a_child_looks_for_itself_and_leaves_its_parents_session_alone(dsn: str, waits: Waits) -> None:
    becomes(waits, lambda value: value is not None)
    before = sessions(dsn)

    def read() -> list[object]:
        first = waits()
        becomes(waits, lambda value: value is not None)
        mine = [pid for pid in sessions(dsn) if pid not in before]
        waits.close()
        until(lambda: not looking())
        return [first, len(mine)]

    assert in_child(read) == [None, 1]
    until(lambda: sessions(dsn) == before)
    becomes(waits, lambda value: value is not None)
    assert sessions(dsn) == before


# --- what it refuses ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"conninfo": 3}, TypeError, "conninfo must be a str"),
        ({"conninfo": "nonsense secret"}, ConfigError, "conninfo is no PostgreSQL address"),
        ({"interval": 0.09}, ConfigError, "interval must be from 0.1 to 60, got 0.09"),
        ({"interval": 60.1}, ConfigError, "interval must be from 0.1 to 60, got 60.1"),
        ({"interval": 10**400}, ConfigError, "interval must be from 0.1 to 60, got 1000"),
        ({"interval": float("nan")}, ConfigError, "got nan"),
        ({"interval": float("inf")}, ConfigError, "got inf"),
        ({"interval": True}, TypeError, "interval must be a number, got True"),
        ({"interval": "1"}, TypeError, "interval must be a number"),
        ({"cores": 0}, ConfigError, "cores must be at least 1, got 0"),
        ({"cores": 1.5}, TypeError, "cores must be an int"),
        ({"floor": -1}, ConfigError, "floor must be at least 1, got -1"),
        ({"floor": None}, TypeError, "floor must be an int, got None"),
    ],
)
def test_what_breaks_a_rule_is_refused(
    arguments: dict[str, Any], error: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says) as refused:
        Waits(**{"conninfo": "postgresql://host/db", **arguments})
    assert "secret" not in str(refused.value)
    assert not looking()
