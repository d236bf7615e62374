"""A connection of Django's holds a permit exactly as long as it is open."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("django", reason="Django is not installed", exc_type=ImportError)
pytest.importorskip("psycopg", reason="psycopg is not installed", exc_type=ImportError)

from django.core.exceptions import ImproperlyConfigured
from django.db import (
    Error,
    OperationalError,
    ProgrammingError,
    close_old_connections,
    connections,
    transaction,
)
from django.db.backends.signals import connection_created
from djangokit import (
    Entry,
    Register,
    in_request,
    pooled,
    postgresql,
    register,
    select,
    sqlite3,
)
from gatekit import admitted, assert_at_rest, in_thread, released, shed, together, until
from tidegate import Gate, Shed
from tidegate._held import marked
from tidegate._native import Hold
from tidegate.demo.postgres_server import PostgresServer
from tidegate.django import database_gate

__all__ = ["register"]  # a fixture

leak = pytest.mark.leak
ENGINES = ("postgresql", "postgresql-pool", "sqlite3")


class Abort(BaseException):
    pass


@pytest.fixture
def entry(request: pytest.FixtureRequest, dsn: str, tmp_path: Path) -> Entry:
    """The entry of DATABASES for one of ENGINES."""
    if request.param == "sqlite3":
        return sqlite3(tmp_path)
    return pooled(dsn) if request.param == "postgresql-pool" else postgresql(dsn)


each_engine = pytest.mark.parametrize("entry", ENGINES, indirect=True)


# --- what it is for --------------------------------------------------------------------------------


@each_engine
def test_an_open_connection_holds_a_permit(gate: Gate, register: Register, entry: Entry) -> None:
    connection = register(entry)
    assert gate.in_flight == 0
    for _ in range(2):
        assert select(connection) == 1
        assert select(connection) == 1
        assert gate.in_flight == 1
        close_old_connections()
        assert gate.in_flight == 0
    connection.close()
    assert admitted(gate.stats()) == 2
    assert released(gate.stats()) == {"success": 2}
    assert_at_rest(gate)


@each_engine
def test_a_shed_passes_djangos_error_handling_as_it_is(gate: Gate, register: Register, entry: Entry) -> None:
    connection = register(entry)
    with gate, gate:
        for attempt in (
            connection.cursor,
            connection.ensure_connection,
            transaction.atomic("gated").__enter__,
        ):
            with pytest.raises(Shed) as raised:
                attempt()
            assert raised.value.reason == "limit"
            assert raised.value.__context__ is None
        assert connection.connection is None
        assert connection.errors_occurred is False
    assert select(connection) == 1, "it works again"
    with transaction.atomic("gated"):
        assert select(connection) == 1
    connection.close()
    assert shed(gate.stats()) == 3
    assert_at_rest(gate)


@each_engine
def test_a_thread_inside_a_transaction_is_never_shed(gate: Gate, register: Register, entry: Entry) -> None:
    connection = register(entry)
    with transaction.atomic("gated"):
        assert select(connection) == 1
        gate.set_limit(0)
        with transaction.atomic("gated"):
            assert select(connection) == 1
    gate.set_limit(2)
    connection.close()
    assert_at_rest(gate)


@each_engine
def test_threads_share_the_limit(register: Register, entry: Entry) -> None:
    register({**entry, "TIDEGATE": {"limit": 4, "name": "threads"}})
    gate = database_gate("gated")
    answers: list[object] = []

    def work() -> None:
        for _ in range(6):
            try:
                answers.append(select(connections["gated"]))
            except Shed as error:
                answers.append(error.gate)
            finally:
                connections["gated"].close()

    together(*[work] * 12)
    assert set(answers) <= {1, "threads"}
    assert len(answers) == 72
    assert gate.stats().high_water <= 4
    assert_at_rest(gate)


# --- settings --------------------------------------------------------------------------------------


def test_the_same_description_is_the_same_gate_in_all_threads(register: Register, tmp_path: Path) -> None:
    register({**sqlite3(tmp_path), "TIDEGATE": {"limit": 3}})
    gate = database_gate("gated")
    assert (gate.name, gate.limit) == ("gated", 3)
    assert all(found is gate for found in together(*[lambda: connections["gated"].gate] * 8))
    connections.settings["gated"]["TIDEGATE"] = {"limit": 4}
    assert database_gate("gated").limit == 4


def test_a_path_names_a_gate(gate: Gate, register: Register, tmp_path: Path) -> None:
    assert register(sqlite3(tmp_path)).gate is gate
    assert database_gate("gated") is gate


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"must be the dotted path of a Gate or a dict of a Gate's arguments, got None"),
        (20, r"got 20"),
        (Gate("db", 1), r"got <Gate 'db'"),
        ("gate", r"must be the dotted path of a Gate: gate doesn't look like a module path"),
        ("no_such_module.gate", r"No module named 'no_such_module'"),
        ("djangokit.no_such_gate", r"does not define a \"no_such_gate\""),
        ("djangokit.THE_GATE", r"is 'djangokit.current'"),
        ({}, r"must be a Gate's arguments: .*limit"),
        ({"limit": -1}, r"must be a Gate's arguments: .*-1"),
        ({"limit": 1, "colour": "red"}, r"must be a Gate's arguments: .*colour"),
    ],
)
def test_bad_settings(register: Register, tmp_path: Path, value: object, message: str) -> None:
    connection = register({**sqlite3(tmp_path), "TIDEGATE": value})
    for attempt in (connection.cursor, lambda: database_gate("gated")):
        with pytest.raises(ImproperlyConfigured, match=message) as raised:
            attempt()
        assert str(raised.value).startswith("DATABASES['gated']['TIDEGATE']")
    assert connection.connection is None


@pytest.mark.parametrize("age", [60, None])
def test_persistent_connections_are_refused(
    gate: Gate, register: Register, dsn: str, age: int | None
) -> None:
    connection = register(postgresql(dsn, CONN_MAX_AGE=age))
    with pytest.raises(ImproperlyConfigured, match=rf"'gated'.*must be 0.*got {age}.*GateMiddleware"):
        connection.cursor()
    assert admitted(gate.stats()) == 0
    pool = register(postgresql(dsn, CONN_MAX_AGE=age, OPTIONS={"pool": True}), "pooled")
    with pytest.raises(ImproperlyConfigured, match="Pooling doesn't support persistent connections"):
        pool.cursor()
    assert_at_rest(gate)


def test_a_database_in_memory_passes(gate: Gate, register: Register) -> None:
    """Django never closes it: tests would hold a permit for ever."""
    connection = register({"ENGINE": "tidegate.django.sqlite3", "NAME": ":memory:"})
    with gate, gate:
        assert select(connection) == 1
    assert admitted(gate.stats()) == 2
    super(type(connection), connection)._close()


# --- leaks -----------------------------------------------------------------------------------------


@leak("django-engine", "exception")
@each_engine
def test_exception_in_the_body(gate: Gate, register: Register, entry: Entry) -> None:
    register(entry)

    def view() -> None:
        with transaction.atomic("gated"):
            select(connections["gated"])
            raise KeyError

    with pytest.raises(KeyError):
        in_request(view)
    assert gate.in_flight == 0
    with pytest.raises((OperationalError, ProgrammingError)):
        in_request(lambda: select(connections["gated"], "nonsense FROM nowhere"))
    assert_at_rest(gate)


@leak("django-engine", "base-exception")
@each_engine
@pytest.mark.parametrize("error", [Abort, SystemExit, GeneratorExit])
def test_base_exception_in_the_body(
    gate: Gate, register: Register, entry: Entry, error: type[BaseException]
) -> None:
    register(entry)

    def view() -> None:
        with transaction.atomic("gated"):
            select(connections["gated"])
            raise error

    with pytest.raises(error):
        in_request(view)
    assert_at_rest(gate)


@leak("django-engine", "timeout")
def test_no_connection_of_the_pool_within_its_timeout_is_overload(
    gate: Gate, register: Register, dsn: str
) -> None:
    connection = register(pooled(dsn, max_size=1))
    select(connection)
    connection.pool.timeout = 0.01  # not before: to connect may take longer

    def other() -> None:
        with pytest.raises(OperationalError, match="couldn't get a connection"):
            connections["gated"].cursor()
        assert gate.in_flight == 1

    in_thread(other)
    connection.close()
    assert released(gate.stats()) == {"overload": 1, "success": 1}
    assert_at_rest(gate)


@leak("django-engine", "timeout")
def test_too_many_requests_for_the_pool_are_overload(gate: Gate, register: Register, dsn: str) -> None:
    gate.set_limit(3)
    connection = register(pooled(dsn, max_size=1, max_waiting=1, timeout=30))
    select(connection)
    waiting = threading.Thread(target=lambda: in_request(lambda: select(connections["gated"])))
    waiting.start()
    until(lambda: connection.pool.get_stats().get("requests_waiting", 0) == 1)

    def one_more() -> None:
        with pytest.raises(OperationalError, match="requests waiting"):
            connections["gated"].cursor()

    in_thread(one_more)
    connection.close()
    waiting.join()
    assert released(gate.stats()) == {"overload": 1, "success": 2}
    assert_at_rest(gate)


@leak("django-engine", "invalidate")
@each_engine
def test_closed_inside_a_transaction(gate: Gate, register: Register, entry: Entry) -> None:
    connection = register(entry)
    with pytest.raises(Error), transaction.atomic("gated"):
        select(connection)
        connection.close()
        assert gate.in_flight == 0
        select(connection)
    assert gate.in_flight == 0
    assert select(connection) == 1
    assert gate.in_flight == 1
    connection.close()
    assert_at_rest(gate)


@leak("django-engine", "invalidate")
def test_a_connection_that_is_unusable_is_closed_at_the_end_of_the_request(
    gate: Gate, register: Register, dsn: str
) -> None:
    register(postgresql(dsn))

    def view() -> None:
        with pytest.raises(OperationalError):
            select(connections["gated"], "pg_terminate_backend(pg_backend_pid())")
        with pytest.raises(OperationalError):
            select(connections["gated"])
        assert gate.in_flight == 1, "until Django lets go of it"

    in_request(view)
    assert_at_rest(gate)


@leak("django-engine", "gc")
def test_a_thread_that_ends_without_closing(gate: Gate, register: Register, tmp_path: Path) -> None:
    register(sqlite3(tmp_path))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        in_thread(lambda: select(connections["gated"]))
        gc.collect()
    assert any("permit" in str(warning.message) for warning in warned)
    assert gate.stats().collected == 1
    assert_at_rest(gate)


@leak("django-engine", "nested")
@each_engine
def test_two_databases_with_one_gate(gate: Gate, register: Register, entry: Entry) -> None:
    first, second = register(entry), register(entry, "second")
    select(first)
    select(second)
    assert gate.in_flight == 1
    first.close()
    assert gate.in_flight == 1, "the permit goes with the last of them"
    second.close()
    assert gate.in_flight == 0
    assert admitted(gate.stats()) == 1
    assert_at_rest(gate)


@leak("django-engine", "nested")
@each_engine
def test_a_request_that_holds_a_permit_is_never_shed(gate: Gate, register: Register, entry: Entry) -> None:
    connection = register(entry)
    with gate:
        with Hold.enter(gate) as hold, marked(hold):
            select(connection)
            assert gate.in_flight == 2
        assert gate.in_flight == 2, "the connection is still open"
        connection.close()
        assert gate.in_flight == 1
    assert_at_rest(gate)


@leak("django-engine", "failed-connect")
@pytest.mark.parametrize("options", [{}, {"pool": {"min_size": 0, "max_size": 1, "timeout": 0.05}}])
def test_a_connection_that_is_refused(gate: Gate, register: Register, options: dict[str, Any]) -> None:
    entry = postgresql("postgresql://postgres@127.0.0.1:1/postgres", OPTIONS=options)
    connection = register(entry)
    for _ in range(3):
        with pytest.raises(OperationalError):
            connection.cursor()
        assert gate.in_flight == 0
    assert released(gate.stats()) == {"overload" if options else "ignore": 3}
    assert_at_rest(gate)


@leak("django-engine", "failed-connect")
@each_engine
def test_a_receiver_of_connection_created_that_raises(gate: Gate, register: Register, entry: Entry) -> None:
    """Django leaves the connection open, so the permit stays until it is closed."""
    connection = register(entry)

    def fail(**_: Any) -> None:
        raise KeyError

    connection_created.connect(fail)
    try:
        with pytest.raises(KeyError):
            connection.cursor()
    finally:
        connection_created.disconnect(fail)
    assert connection.connection is not None
    assert gate.in_flight == 1
    close_old_connections()
    assert gate.in_flight == 0
    assert_at_rest(gate)


@leak("django-engine", "exception")
def test_a_connection_that_cannot_be_closed(gate: Gate, register: Register, tmp_path: Path) -> None:
    """It holds its permit until then, and not longer."""
    connection = register(sqlite3(tmp_path))
    select(connection)
    real, seen = connection.connection, []

    class Stubborn:
        def close(self) -> None:
            seen.append(gate.in_flight)
            raise KeyError

    connection.connection = Stubborn()
    with pytest.raises(KeyError):
        connection.close()
    real.close()
    assert seen == [1]
    assert_at_rest(gate)


@leak("django-engine", "dispose")
def test_the_pool_is_closed_while_a_connection_is_out(gate: Gate, register: Register, dsn: str) -> None:
    connection = register(pooled(dsn))
    select(connection)
    connection.close_pool()
    assert gate.in_flight == 1
    connection.close()
    assert gate.in_flight == 0
    assert select(connection) == 1, "with a new pool"
    connection.close()
    assert_at_rest(gate)


@leak("django-engine", "server-killed")
@pytest.mark.parametrize("kind", [postgresql, pooled])
def test_the_server_is_killed(
    gate: Gate, register: Register, postgres_server: PostgresServer, kind: Callable[[str], Entry]
) -> None:
    register(kind(postgres_server.dsn))

    def view() -> None:
        connection = connections["gated"]
        assert select(connection) == 1
        postgres_server.kill()
        with pytest.raises(OperationalError):
            select(connection)
        assert gate.in_flight == 1

    in_request(view)
    assert gate.in_flight == 0
    if kind is postgresql:
        with pytest.raises(OperationalError):
            in_request(lambda: select(connections["gated"]))
    postgres_server.start()
    assert in_request(lambda: select(connections["gated"])) == 1
    assert_at_rest(gate)
