"""tidegate.sqlalchemy on synchronous engines, over psycopg and sqlite3."""

from __future__ import annotations

import gc
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psycopg
import pytest
from gatekit import PATIENCE, admitted, assert_at_rest, in_thread, released, shed, together
from poolkit import Stop, assert_counted, collect, driver, interrupted
from sqlalchemy import Engine, create_engine, event, exc, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker
from sqlalchemy.pool import AssertionPool, NullPool, QueuePool, SingletonThreadPool, StaticPool
from tidegate import ConfigError, Gate, Shed
from tidegate._held import marked
from tidegate._native import Hold
from tidegate.demo.postgres_server import PostgresServer
from tidegate.sqlalchemy import gated, gated_pool_class

HOOK = "sqlalchemy-sync"
EngineOf = Callable[..., Engine]


@pytest.fixture(params=["psycopg", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/db"
    return driver(request.getfixturevalue("dsn"), "psycopg")


@pytest.fixture
def postgres_url(dsn: str) -> str:
    return driver(dsn, "psycopg")


@pytest.fixture
def engine_of() -> Iterator[EngineOf]:
    """create_engine, for engines that are disposed of after the test."""
    engines: list[Engine] = []

    def create(url: str, **options: Any) -> Engine:
        engines.append(create_engine(url, **options))
        return engines[-1]

    yield create
    for engine in engines:
        engine.dispose()


@pytest.fixture
def engine(url: str, gate: Gate, engine_of: EngineOf) -> Engine:
    return engine_of(url, **gated(gate))


class Base(DeclarativeBase):
    pass


class Note(Base):
    __tablename__ = "note"
    id: Mapped[int] = mapped_column(primary_key=True)


# --- what it does ----------------------------------------------------------------------------------


def test_a_permit_is_held_from_checkout_to_return(engine: Engine, gate: Gate) -> None:
    with engine.connect() as connection:
        assert gate.in_flight == 1
        assert connection.scalar(text("select 1")) == 1
    assert gate.in_flight == 0
    with engine.begin() as connection:
        assert gate.in_flight == 1
    assert_counted(gate, success=2)


def test_the_pool_is_the_dialect_s_own_with_its_options(url: str, gate: Gate, engine_of: EngineOf) -> None:
    engine = engine_of(url, pool_size=3, max_overflow=4, pool_timeout=5, **gated(gate))
    pool = engine.pool
    assert isinstance(pool, QueuePool)
    assert (pool.size(), pool._max_overflow, pool.timeout()) == (3, 4, 5)
    assert type(pool).__name__ == "GatedQueuePool"
    assert type(pool).__module__ == QueuePool.__module__  # loggers are configured by it


def test_what_does_not_fit_is_shed_as_it_is(engine: Engine, gate: Gate) -> None:
    Base.metadata.create_all(engine)
    sessions = sessionmaker(engine)

    def flush() -> None:
        with sessions() as session:
            session.add(Note(id=1))
            session.commit()

    def query() -> None:
        with Session(engine) as session:
            session.get(Note, 1)

    def scoped() -> None:
        session = scoped_session(sessions)
        try:
            session.execute(text("select 1"))
        finally:
            session.remove()

    ways = [engine.connect, lambda: engine.begin().__enter__(), engine.raw_connection, flush, query, scoped]
    permits = [gate.try_admit() for _ in range(gate.limit)]
    for way in ways:
        with pytest.raises(Shed) as caught:
            way()
        assert type(caught.value) is Shed
        assert (caught.value.__cause__, caught.value.gate) == (None, "db")
    assert shed(gate.stats()) == len(ways)
    for permit in permits:
        permit.release()
    for way in ways[3:]:
        way()
    assert_at_rest(gate)


def test_several_engines_share_a_gate(url: str, gate: Gate, engine_of: EngineOf) -> None:
    options = gated(gate)
    primary, replica = engine_of(url, **options), engine_of(url, **options)
    with primary.connect():
        in_thread(lambda: replica.connect().close())
        permit = gate.try_admit()
        with pytest.raises(Shed):
            in_thread(replica.connect)
        permit.release()
    assert_at_rest(gate)


def test_a_gate_may_stand_instead_of_a_pool(url: str, gate: Gate, engine_of: EngineOf) -> None:
    engine = engine_of(url, poolclass=NullPool, **gated(gate))
    assert isinstance(engine.pool, NullPool)
    with engine.connect() as connection:
        assert connection.scalar(text("select 1")) == 1
        assert gate.in_flight == 1
    assert_counted(gate, success=1)


def test_other_pools_of_one_user_a_connection(url: str, gate: Gate, engine_of: EngineOf) -> None:
    engine = engine_of(url, poolclass=AssertionPool, **gated(gate))
    with engine.connect():
        with pytest.raises(AssertionError, match="already checked out"):
            in_thread(engine.connect)
        assert gate.in_flight == 1
    assert_at_rest(gate)


def test_a_pool_made_by_hand(gate: Gate, tmp_path: Path) -> None:
    pool = gated_pool_class(QueuePool, gate)(lambda: sqlite3.connect(tmp_path / "db"))
    connection = pool.connect()
    assert gate.in_flight == 1
    connection.close()
    pool.dispose()
    assert_counted(gate, success=1)


def test_dry_run_lets_all_in(url: str, engine_of: EngineOf) -> None:
    gate = Gate("db", limit=0, enforce=False)
    engine = engine_of(url, **gated(gate))
    with engine.connect():
        assert gate.stats().over_in_flight == 1
    assert gate.stats().over_in_flight == 0


# --- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("sqlite://", {}),
        ("sqlite:///:memory:", {}),
        ("sqlite://", {"poolclass": StaticPool}),
        ("sqlite:///file", {"poolclass": SingletonThreadPool}),
    ],
)
def test_pools_that_share_connections_are_refused(gate: Gate, url: str, options: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigError, match=r"poolclass must .* (StaticPool|SingletonThreadPool), which shares"
    ):
        create_engine(url, **options, **gated(gate))


def test_what_else_cannot_be_gated_is_refused(gate: Gate) -> None:
    pool = QueuePool(lambda: None)
    with pytest.raises(ConfigError, match="pool must not be given"):
        create_engine("sqlite:///file", pool=pool, **gated(gate))
    with pytest.raises(ConfigError, match="must have no gate yet, got GatedQueuePool"):
        gated_pool_class(gated_pool_class(QueuePool, gate), gate)
    for poolclass in (int, "QueuePool"):
        with pytest.raises(ConfigError, match=f"must be a SQLAlchemy Pool class, got {poolclass!r}"):
            gated_pool_class(poolclass, gate)
    with pytest.raises(ConfigError, match="hold_until must be 'return' or 'close', got 'later'"):
        gated(gate, hold_until="later")
    with pytest.raises(TypeError, match=r"gate must be a Gate, got 'db' \(str\)"):
        gated("db")
    for options in ({}, {"tidegate": gate}):
        with pytest.raises(ConfigError, match=r"needs a gate: create_engine\(url, \*\*gated\(gate\)\)"):
            create_engine("sqlite:///file?plugin=tidegate", **options)


# --- the leak matrix -------------------------------------------------------------------------------


@pytest.mark.leak(HOOK, "exception")
def test_an_exception_in_the_block(engine: Engine, gate: Gate) -> None:
    with pytest.raises(ValueError, match="a bug"), engine.connect():
        raise ValueError("a bug")
    with pytest.raises(exc.DBAPIError), engine.begin() as connection:
        connection.execute(text("select nonsense"))
    with pytest.raises(ValueError, match="a bug"), Session(engine) as session:
        session.connection()
        raise ValueError("a bug")
    assert_counted(gate, success=3)


@pytest.mark.leak(HOOK, "base-exception")
@pytest.mark.parametrize("error", [Stop, SystemExit, GeneratorExit, KeyboardInterrupt])
def test_a_base_exception_in_the_block(engine: Engine, gate: Gate, error: type[BaseException]) -> None:
    with pytest.raises(error), engine.connect():
        raise error
    assert_counted(gate, success=1)


@pytest.mark.leak(HOOK, "exception")
@pytest.mark.parametrize("error", [ValueError, Stop])
@pytest.mark.parametrize("name", ["connect", "first_connect", "checkout", "reset"])
def test_a_listener_that_raises(engine: Engine, gate: Gate, name: str, error: type[BaseException]) -> None:
    """sqlalchemy 13548."""

    def listener(*_: object) -> None:
        raise error("of a listener")

    event.listen(engine.pool, name, listener)
    for _ in range(3):
        # Of what a reset raises, SQLAlchemy logs an Exception and goes on.
        swallowed = name == "reset" and error is ValueError
        with nullcontext() if swallowed else pytest.raises(error, match="of a listener"), engine.connect():
            pass
        collect()  # some releases of SQLAlchemy lose the connection then
        assert gate.in_flight == 0
    event.remove(engine.pool, name, listener)
    with engine.connect():
        pass
    assert admitted(gate.stats()) == 4
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "exception")
@pytest.mark.parametrize("detached", [False, True])
def test_a_return_that_fails(url: str, gate: Gate, engine_of: EngineOf, detached: bool) -> None:
    """The permit is held until the connection is gone, and not longer."""
    engine = engine_of(url, poolclass=NullPool, **gated(gate, hold_until="close"))
    seen = []

    @event.listens_for(engine, "close_detached" if detached else "close")
    def listener(*_: object) -> None:
        seen.append(gate.in_flight)
        raise Stop  # an Exception of a detached one is only logged

    connection = engine.raw_connection()
    driver_connection = connection.driver_connection
    if detached:
        connection.detach()
    with pytest.raises(Stop):
        connection.close()
    driver_connection.close()
    assert seen == [1]
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "exception")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_checkin_listener_that_raises(engine: Engine, gate: Gate) -> None:
    """SQLAlchemy never returns the connection then; the permit comes back as soon as it is collected."""

    @event.listens_for(engine, "checkin")
    def listener(*_: object) -> None:
        raise ValueError("of a listener")

    for n in range(1, 4):
        with pytest.raises(ValueError, match="of a listener"):
            engine.connect().close()
        collect()
        assert gate.in_flight == 0
        assert gate.stats().collected == n
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "exception")
def test_a_listener_that_calls_each_connection_lost(engine: Engine, gate: Gate) -> None:
    @event.listens_for(engine, "checkout")
    def lost(*_: object) -> None:
        raise exc.DisconnectionError

    with pytest.raises(exc.InvalidRequestError, match="closed"):
        engine.connect()
    assert_counted(gate, ignore=1)


@pytest.mark.leak(HOOK, "timeout")
def test_a_checkout_that_times_out_is_overload(url: str, gate: Gate, engine_of: EngineOf) -> None:
    engine = engine_of(url, pool_size=1, max_overflow=0, pool_timeout=0.01, **gated(gate))
    with engine.connect():
        with pytest.raises(exc.TimeoutError):
            in_thread(engine.connect)
        assert gate.in_flight == 1
    assert_counted(gate, success=1, overload=1)


@pytest.mark.leak(HOOK, "timeout")
def test_a_statement_that_times_out_is_what_the_gate_says(postgres_url: str, engine_of: EngineOf) -> None:
    gate = Gate("db", limit=2, outcomes={psycopg.errors.QueryCanceled: "overload"})
    engine = engine_of(postgres_url, **gated(gate))
    with engine.connect() as connection:
        connection.execute(text("set local statement_timeout = 1"))
        with pytest.raises(exc.OperationalError):
            connection.execute(text("select pg_sleep(10)"))
        assert gate.in_flight == 1  # the connection is still out
    assert_counted(gate, overload=1)


@pytest.mark.leak(HOOK, "invalidate")
def test_an_invalidated_connection_gives_its_permit_back(engine: Engine, gate: Gate) -> None:
    with engine.connect() as connection:
        connection.invalidate()
        assert gate.in_flight == 0
        connection.rollback()
        assert connection.scalar(text("select 1")) == 1  # with another one
        assert gate.in_flight == 1
        connection.connection.invalidate(soft=True)
        assert gate.in_flight == 1
    assert_counted(gate, success=2)


@pytest.mark.leak(HOOK, "invalidate")
def test_a_lost_connection_that_cannot_be_replaced_is_shed_as_it_is(engine: Engine, gate: Gate) -> None:
    """SQLAlchemy wraps what goes wrong before a statement is with the driver."""
    gate.set_limit(1)
    with engine.connect() as connection:
        connection.invalidate()
        connection.rollback()
        with gate:
            for way in (lambda: connection.execute(text("select 1")), connection.begin):
                with pytest.raises(Shed) as caught:
                    way()
                assert (caught.value.gate, caught.value.limit) == ("db", 1)
                assert caught.value.__cause__ is not caught.value
                connection.rollback()
        assert connection.scalar(text("select 1")) == 1
    assert_counted(gate, success=3)


@pytest.mark.leak(HOOK, "detach")
@pytest.mark.parametrize("hold_until", ["return", "close"])
def test_a_detached_connection(url: str, gate: Gate, engine_of: EngineOf, hold_until: Any) -> None:
    engine = engine_of(url, pool_size=1, max_overflow=0, **gated(gate, hold_until=hold_until))
    for _ in range(2):
        raw = engine.raw_connection()
        raw.detach()
        assert gate.in_flight == (hold_until == "close")
        with engine.connect():  # in the same thread, so it joins a permit that is still held
            assert gate.in_flight == 1
        assert gate.in_flight == (hold_until == "close")
        raw.close()
        assert gate.in_flight == 0
    assert_at_rest(gate)
    with engine.connect() as connection:
        connection.detach()
        assert connection.scalar(text("select 1")) == 1
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "detach")
def test_a_connection_that_a_listener_detaches(engine: Engine, gate: Gate) -> None:
    @event.listens_for(engine, "checkout")
    def detach(connection: object, record: object, proxy: Any) -> None:
        proxy.detach()

    with engine.connect() as connection:
        assert connection.scalar(text("select 1")) == 1
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "gc")
@pytest.mark.parametrize("hold_until", ["return", "close"])
def test_a_forgotten_connection(url: str, gate: Gate, engine_of: EngineOf, hold_until: Any) -> None:
    engine = engine_of(url, **gated(gate, hold_until=hold_until))
    for _ in range(3):
        raw = engine.raw_connection()
        assert gate.in_flight == 1
        del raw
        collect()
        assert gate.in_flight == 0
    assert_counted(gate, success=3)


@pytest.mark.leak(HOOK, "gc")
@pytest.mark.filterwarnings("ignore:.*was deleted while still open:ResourceWarning")
def test_a_forgotten_detached_connection(url: str, gate: Gate, engine_of: EngineOf) -> None:
    engine = engine_of(url, **gated(gate, hold_until="close"))
    raw = engine.raw_connection()
    raw.detach()
    assert gate.in_flight == 1
    with pytest.warns(ResourceWarning, match="gate 'db' was collected"):
        del raw
        gc.collect()
    assert gate.stats().collected == 1
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "nested")
def test_a_nested_checkout_is_free(engine: Engine, gate: Gate) -> None:
    gate.set_limit(1)
    with engine.connect(), engine.connect() as inner, Session(engine) as session:
        session.execute(text("select 1"))
        inner.close()
        assert gate.in_flight == 1
        with pytest.raises(Shed):
            in_thread(engine.connect)
    assert_counted(gate, success=1)


@pytest.mark.leak(HOOK, "nested")
def test_the_permit_of_the_request_serves_all_layers(engine: Engine, gate: Gate) -> None:
    """D32: counted once by the edge, the decorator and the pool, and with every place taken."""

    @gate.guard
    def handler() -> None:
        with engine.connect(), engine.connect():
            everybody_is_inside.wait(PATIENCE)
            assert gate.in_flight == 4
            everybody_has_looked.wait(PATIENCE)

    def request() -> None:
        with Hold.enter(gate) as hold, marked(hold):
            handler()

    gate.set_limit(4)
    everybody_is_inside, everybody_has_looked = threading.Barrier(4), threading.Barrier(4)
    together(*[request] * 4)
    assert gate.stats().high_water == 4
    assert_counted(gate, success=4)


@pytest.mark.leak(HOOK, "nested")
def test_a_connection_that_outlives_its_request_stays_counted(engine: Engine, gate: Gate) -> None:
    with Hold.enter(gate) as hold, marked(hold):
        connection = engine.connect()
    assert gate.in_flight == 1
    connection.close()
    assert_counted(gate, success=1)


@pytest.mark.leak(HOOK, "failed-connect")
def test_a_connect_that_fails(gate: Gate, tmp_path: Path, engine_of: EngineOf) -> None:
    for url in (f"sqlite:///{tmp_path}/no/such/folder", "postgresql+psycopg://nobody@127.0.0.1:1/none"):
        engine = engine_of(url, **gated(gate))
        for _ in range(3):
            with pytest.raises(exc.OperationalError):
                engine.connect()
            assert gate.in_flight == 0
    assert_counted(gate, ignore=6)


@pytest.mark.leak(HOOK, "failed-connect")
def test_a_connection_that_was_lost_in_the_pool(postgres_url: str, gate: Gate, engine_of: EngineOf) -> None:
    """Pre-ping, sqlalchemy 8974 and 6652: one release for each checkout, however often it connects."""
    engine = engine_of(postgres_url, pool_pre_ping=True, **gated(gate))
    with engine.connect() as first, engine.connect() as second:
        pids = [each.scalar(text("select pg_backend_pid()")) for each in (first, second)]
    with psycopg.connect(
        engine.url.set(drivername="postgresql").render_as_string(), autocommit=True
    ) as admin:
        for pid in pids:
            admin.execute("select pg_terminate_backend(%s, 10000)", [pid])
    with engine.connect() as connection:
        assert gate.in_flight == 1
        assert connection.scalar(text("select pg_backend_pid()")) not in pids
    assert_counted(gate, success=2)


@pytest.mark.leak(HOOK, "invalidate")
def test_recycled_connections(url: str, gate: Gate, engine_of: EngineOf) -> None:
    engine = engine_of(url, pool_recycle=0, **gated(gate))
    for _ in range(3):
        with engine.connect():
            assert gate.in_flight == 1
    assert_counted(gate, success=3)


@pytest.mark.leak(HOOK, "dispose")
@pytest.mark.filterwarnings("ignore:.*was deleted while still open:ResourceWarning")
def test_dispose_with_a_connection_out(engine: Engine, gate: Gate) -> None:
    with engine.connect() as connection:
        engine.dispose()
        assert gate.in_flight == 1
        assert connection.scalar(text("select 1")) == 1
        with engine.connect():  # of the pool that took its place, with the same gate
            assert gate.in_flight == 1
        in_thread(lambda: engine.connect().close())
    engine.dispose(close=False)
    with engine.connect():
        assert gate.in_flight == 1
    collect()  # the connections that were left open
    assert_counted(gate, success=3)


@pytest.mark.leak(HOOK, "server-killed")
@pytest.mark.filterwarnings("ignore:.*was deleted while still open:ResourceWarning")
def test_the_server_is_killed(postgres_server: PostgresServer, gate: Gate, engine_of: EngineOf) -> None:
    engine = engine_of(driver(postgres_server.dsn, "psycopg"), **gated(gate))
    with pytest.raises(exc.OperationalError), engine.connect() as connection:
        postgres_server.kill()
        connection.execute(text("select 1"))
    assert gate.in_flight == 0
    for _ in range(2):
        with pytest.raises(exc.OperationalError):
            engine.connect()
    assert_at_rest(gate)
    postgres_server.start()
    with engine.connect() as connection:
        assert connection.scalar(text("select 1")) == 1
    collect()
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "keyboard-interrupt")
def test_interrupts_at_any_moment(tmp_path: Path, seed: int) -> None:
    counts = interrupted(HOOK, f"sqlite:///{tmp_path}/db", rounds=4_000, seed=seed)
    assert counts["interrupted"] > 100
    assert counts["left"] == 0


# --- many at once ----------------------------------------------------------------------------------


def test_a_hammer(postgres_url: str, engine_of: EngineOf, restless: None) -> None:
    """16 threads that do to their connections whatever can be done."""
    gate = Gate("db", limit=6)
    engine = engine_of(postgres_url, pool_size=3, max_overflow=1, pool_timeout=0.02, **gated(gate))

    def raising(connection: Any) -> None:
        raise ValueError("a bug")

    def nested(connection: Any) -> None:
        with engine.connect() as inner:
            inner.execute(text("select 1"))

    acts = [
        lambda connection: connection.execute(text("select 1")),
        lambda connection: connection.invalidate(),
        lambda connection: connection.detach(),
        lambda connection: connection.connection.invalidate(soft=True),
        lambda connection: None,
        raising,
        nested,
    ]

    def user(number: int) -> Callable[[], int]:
        def use() -> int:
            shed = 0
            for n in range(25):
                try:
                    with engine.connect() as connection:
                        acts[(number + n) % len(acts)](connection)
                except Shed:
                    shed += 1
                except (ValueError, exc.TimeoutError):
                    pass
            return shed

        return use

    refused = sum(together(*[user(number) for number in range(16)]))
    stats = gate.stats()
    assert stats.high_water <= gate.limit
    assert shed(stats) == refused
    assert set(released(stats)) <= {"success", "overload"}
    assert stats.collected == 0
    assert_at_rest(gate)
