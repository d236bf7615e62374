"""The chatbot's database on a real PostgreSQL: what it holds, whom it ends, and that nothing of it stays."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg_pool", reason='PostgreSQL needs: pip install "tidegate[demo]"')

import psycopg
from demokit import wait_until
from psycopg.conninfo import conninfo_to_dict
from tidegate.demo.chatbot import search_terms
from tidegate.demo.database import Address, DatabaseError, open_database
from tidegate.demo.home import home
from tidegate.demo.job import Job
from tidegate.demo.postgres import PostgresDatabase, locate
from tidegate.demo.postgres_server import PostgresServer, installed
from tidegate.demo.runner import prepare

if installed() is None:
    pytest.skip('PostgreSQL needs: pip install "tidegate[demo]"', allow_module_level=True)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="module")
def job(server: PostgresServer) -> Iterator[Job]:
    """A database that has been built."""
    with home("postgres", server.dsn) as address:
        yield prepare(address)


@pytest.fixture
def user(server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else on the same server."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        yield connection


def everything(user: psycopg.Connection[Any]) -> set[tuple[Any, ...]]:
    """What the server holds for its users."""
    relations = "SELECT relnamespace::regnamespace::text, relname FROM pg_class"
    schemas = "SELECT nspname, '' FROM pg_namespace WHERE nspname NOT LIKE 'pg_%temp%'"
    return {*user.execute(relations), *user.execute(schemas)}


def test_it_answers_as_sqlite_does(job: Job, tmp_path: Path) -> None:
    sqlite = Address("sqlite", str(tmp_path / "chatbot.db"))
    open_database(sqlite).build()
    one, other = (open_database(address).connect() for address in (job.database, sqlite))
    for conversation in (0, 7, 1999):
        history = one.history(conversation)
        assert history == other.history(conversation) != []
        terms = search_terms(history[0])
        assert one.search(terms, 20_000) == other.search(terms, 20_000)
    one.close()
    other.close()


def test_the_search_is_fitted_to_the_machine(job: Job) -> None:
    assert 1 <= job.depth <= 100_000
    connection = open_database(job.database).connect()
    before = connection.stopwatch()
    connection.search(("a", "b", "c"), job.depth)
    assert connection.stopwatch() > before
    connection.close()


def test_all_happens_in_a_schema_of_its_own_which_is_dropped(
    server: PostgresServer, user: psycopg.Connection[Any]
) -> None:
    before = everything(user)
    with home("postgres", server.dsn) as address:
        open_database(address).build()
        added = everything(user) - before
        schema = PostgresDatabase(address.location).name
        # A long text goes to a table beside its own, where PostgreSQL keeps such tables.
        assert {place for place, _ in added} == {schema, "pg_toast"}
        assert (schema, "message") in added
        assert address.location not in repr(address)
    assert everything(user) == before


def test_it_is_dropped_however_the_run_ends(server: PostgresServer, user: psycopg.Connection[Any]) -> None:
    before = everything(user)
    with pytest.raises(KeyboardInterrupt), home("postgres", server.dsn) as address:
        open_database(address).build()
        busy = psycopg.connect(address.location)
        busy.execute("SELECT count(*) FROM message")  # and now it holds a lock that a drop would wait for
        raise KeyboardInterrupt
    assert everything(user) == before
    busy.close()


def test_only_the_demos_sessions_are_ended(server: PostgresServer, user: psycopg.Connection[Any]) -> None:
    with home("postgres", server.dsn) as address:
        database = PostgresDatabase(address.location)
        ours = [psycopg.connect(address.location) for _ in range(3)]
        with psycopg.connect(server.dsn, application_name="tidegate_demo") as neighbour:
            database.clear()
            for connection in ours:
                with pytest.raises(psycopg.OperationalError, match="terminating connection"):
                    connection.execute("SELECT 1")
                connection.close()
            assert neighbour.execute("SELECT 1").fetchone() == (1,)
        assert user.execute("SELECT 1").fetchone() == (1,)
        database.clear()  # nothing to end is no error


def test_who_is_at_work_is_counted(job: Job) -> None:
    async def watch() -> list[int]:
        database = open_database(job.database)
        sleepers = [await psycopg.AsyncConnection.connect(job.database.location) for _ in range(3)]
        asleep = [asyncio.create_task(sleeper.execute("SELECT pg_sleep(60)")) for sleeper in sleepers]
        async with asyncio.timeout(30), database.watch() as seen:
            while 3 not in seen:
                await asyncio.sleep(0.01)
        await asyncio.to_thread(database.clear)
        ended = await asyncio.gather(*asleep, return_exceptions=True)
        assert all(isinstance(how, psycopg.OperationalError) for how in ended)
        for sleeper in sleepers:
            await sleeper.close()
        return list(seen)

    assert max(asyncio.run(watch())) == 3


@pytest.mark.parametrize(
    ("arm", "sessions"), [("ungated", 64), ("stock", 5), ("semaphore", 3), ("tidegate", 3)]
)
def test_every_arm_has_its_pool(job: Job, user: psycopg.Connection[Any], arm: str, sessions: int) -> None:
    database = PostgresDatabase(job.database.location)
    pool = database.pool(arm, workers=3)
    counted = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    assert user.execute(counted, (database.name,)).fetchone() == (sessions,)
    with pool.lend() as connection:
        assert connection.history(1)
    pool.close()
    wait_until(lambda: user.execute(counted, (database.name,)).fetchone() == (0,))


# --- where the server is -----------------------------------------------------------------------------


def test_the_address_keeps_what_the_user_said_and_adds_what_the_demo_needs() -> None:
    given = "postgresql://me:pa%40ss@db.example:6543/chat?sslmode=require&options=-c%20work_mem%3D8MB&application_name=x"
    made = conninfo_to_dict(locate(given, "tidegate_demo_1"))
    assert made["password"] == "pa@ss"
    assert (made["host"], made["port"], made["dbname"]) == ("db.example", "6543", "chat")
    assert made["sslmode"] == "require"
    assert made["application_name"] == "tidegate_demo_1"
    assert str(made["options"]).startswith("-c work_mem=8MB -c ")
    assert "-c search_path=tidegate_demo_1" in str(made["options"])
    assert conninfo_to_dict(locate("host=a connect_timeout=3", "x"))["connect_timeout"] == "3"


@pytest.mark.parametrize(
    "dsn",
    [
        "",
        "nonsense",
        "mysql://me:secret@db/chat",
        "postgresql://me:p@secret@db/chat",
        "postgresql://me:secret/word@db/chat",
        "postgresql://me:1/secret@db/chat",
        "postgresql://me:%secret@db/chat",
        "host=db password=secret secret",
    ],
)
def test_a_malformed_address_is_refused_and_never_repeated(dsn: str) -> None:
    with pytest.raises(DatabaseError, match="--dsn is not a PostgreSQL URL") as refused:
        locate(dsn, "x")
    assert "secret" not in str(refused.value)


def test_a_server_that_is_too_small_is_told_before_anything_is_done() -> None:
    with (
        PostgresServer(max_connections="20") as server,
        pytest.raises(DatabaseError, match=r"room for 1[67] more connections and the demo needs 70"),
        home("postgres", server.dsn),
    ):
        raise AssertionError("it began")
