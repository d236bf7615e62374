"""Real targets: functions in their own process, SQLite, PostgreSQL, and a FastAPI application on uvicorn."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from loopback import serving
from tidegate.capacity.apart import ApartTarget
from tidegate.capacity.rows import Rows
from tidegate.capacity.sql import PostgresTarget, sqlite_path
from tidegate.capacity.target import Target, TargetError
from tidegate.capacity.url import Request as Sent
from tidegate.capacity.url import UrlTarget, without_password
from tidegate.demo.postgres_server import PostgresServer


def with_target(target: Target, work: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        try:
            await target.open()
            return await work()
        finally:
            await target.close()

    return asyncio.run(main())


def ask(target: Target, times: int = 1) -> list[str | None]:
    async def work() -> list[str | None]:
        return list(await asyncio.gather(*(target.ask(number) for number in range(times))))

    return with_target(target, work)


def withdraw(target: Target, after: float = 0.3) -> float:
    """How long a request takes to end that is withdrawn after so long."""

    async def work() -> float:
        loop = asyncio.get_running_loop()
        asking = asyncio.create_task(target.ask(0))
        await asyncio.sleep(after)
        began = loop.time()
        asking.cancel()
        await asyncio.wait((asking,), timeout=30)
        assert asking.cancelled()
        return loop.time() - began

    return with_target(target, work)


# --- functions ---------------------------------------------------------------------------------------


def function(name: str, data: Path | None = None, threads: int = 8) -> ApartTarget:
    return ApartTarget(
        {
            "kind": "function",
            "function": f"served_functions:{name}",
            "threads": threads,
            "data": None if data is None else str(data),
        }
    )


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)


@pytest.mark.parametrize("name", ["nothing", "prints", "slowly", "slowly_async"])
def test_a_function_is_called(name: str) -> None:
    assert ask(function(name), 20) == [None] * 20


def test_functions_run_at_the_same_time() -> None:
    async def main() -> float:
        target = function("slowly", threads=20)
        await target.open()
        try:
            loop = asyncio.get_running_loop()
            await target.ask(0)
            began = loop.time()
            await asyncio.gather(*(target.ask(number) for number in range(20)))
            return loop.time() - began
        finally:
            await target.close()

    assert asyncio.run(main()) < 20 * 0.05


def test_a_function_that_takes_one_gets_its_row(tmp_path: Path) -> None:
    data = tmp_path / "orders.csv"
    data.write_text("id\n1\n2\n")
    assert ask(function("of_row", data), 4) == [None] * 4


def test_a_function_that_raises_has_failed() -> None:
    assert ask(function("wrong")) == ["LookupError: no such order"]


def test_a_function_that_ends_the_process_is_said() -> None:
    with pytest.raises(TargetError, match="process ended"):
        ask(function("ends_the_process"))


def test_a_function_that_never_ends_does_not_keep_the_run_from_ending() -> None:
    async def main() -> None:
        target = function("never")
        await target.open()
        asking = asyncio.create_task(target.ask(0))
        await asyncio.sleep(0.1)
        asking.cancel()
        await asyncio.sleep(0.1)
        assert not asking.done()
        await target.close()
        await asyncio.wait((asking,))
        assert asking.cancelled()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "says"),
    [("missing", "no function missing"), ("calls", "no function calls"), ("two", "takes 2 arguments")],
)
def test_what_is_no_function_to_call_is_said(name: str, says: str) -> None:
    with pytest.raises(TargetError, match=says):
        ask(function(name))


def test_a_module_that_is_not_there_is_said() -> None:
    target = ApartTarget({"kind": "function", "function": "no_such:f", "threads": 1, "data": None})
    with pytest.raises(TargetError, match=r"Cannot import no_such: ModuleNotFoundError.*Run this where"):
        ask(target)


# --- SQLite ------------------------------------------------------------------------------------------

SLOW = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < 5e8) SELECT max(x) FROM c"


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = tmp_path / "orders.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE orders(id INTEGER PRIMARY KEY, n); INSERT INTO orders VALUES (1, 7), (2, 8)"
    )
    connection.close()
    return str(path)


def sqlite(path: str, statement: str, data: Path | None = None) -> ApartTarget:
    return ApartTarget(
        {
            "kind": "sqlite",
            "database": path,
            "statement": statement,
            "threads": 8,
            "data": None if data is None else str(data),
        }
    )


def test_sqlite_is_asked_with_parameters(orders: str, tmp_path: Path) -> None:
    data = tmp_path / "ids.csv"
    data.write_text("id\n1\n2\n")
    # A row that is not found is a division by zero, which is NULL, which may not be inserted.
    statement = "INSERT INTO orders VALUES (100 + :n, (SELECT n FROM orders WHERE id = :id))"
    assert ask(sqlite(orders, statement, data), 4) == [None] * 4
    with sqlite3.connect(orders) as connection:
        assert connection.execute("SELECT * FROM orders WHERE id >= 100 ORDER BY 1").fetchall() == [
            (100, 7),
            (101, 8),
            (102, 7),
            (103, 8),
        ]
    connection.close()


def test_a_statement_that_fails_in_sqlite_is_said(orders: str) -> None:
    [said] = ask(sqlite(orders, "INSERT INTO orders VALUES (1, 1)"))
    assert said is not None
    assert "IntegrityError: UNIQUE constraint failed" in said


def test_sqlite_is_interrupted(orders: str) -> None:
    assert withdraw(sqlite(orders, SLOW)) < 5


@pytest.mark.parametrize(
    ("statement", "says"),
    [("SELECT * FROM missing", "no such table"), ("SELECT :id", "id"), ("SELEC 1", "syntax")],
)
def test_a_bad_statement_is_said_before_the_run(orders: str, statement: str, says: str) -> None:
    with pytest.raises(TargetError, match=f"{says}.*Check the file"):
        ask(sqlite(orders, statement))


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "missing.db"
    with pytest.raises(TargetError, match="unable to open"):
        ask(sqlite(str(path), "SELECT 1"))
    assert not path.exists()


@pytest.mark.parametrize("dsn", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://host/file"])
def test_what_names_no_file_is_said(dsn: str) -> None:
    with pytest.raises(TargetError, match="names no SQLite file"):
        sqlite_path(dsn)


def test_paths_of_sqlite() -> None:
    assert sqlite_path("sqlite:///orders.db") == "orders.db"
    assert sqlite_path("sqlite:////var/a%20b.db") == "/var/a b.db"


# --- PostgreSQL --------------------------------------------------------------------------------------


def postgres_target(server: PostgresServer, statement: str, rows: Rows | None = None) -> PostgresTarget:
    return PostgresTarget(server.dsn, statement, rows or Rows.none())


def test_postgresql_is_asked_with_parameters(postgres: PostgresServer, tmp_path: Path) -> None:
    data = tmp_path / "ids.csv"
    data.write_text("id\n1\n2\n")
    # A row that is not as it should be is a division by zero.
    statement = "SELECT 1 / (%(id)s::int = %(n)s %% 2 + 1)::int"
    assert ask(postgres_target(postgres, statement, Rows.read(data)), 8) == [None] * 8
    assert ask(postgres_target(postgres, "SELECT 5 % 2")) == [None]


def test_a_statement_that_fails_in_postgresql_is_said_and_the_connection_kept(
    postgres: PostgresServer,
) -> None:
    assert ask(postgres_target(postgres, "SELECT 1 / 0"), 2) == ["DivisionByZero: division by zero"] * 2


def test_postgresql_cancels(postgres: PostgresServer) -> None:
    assert withdraw(postgres_target(postgres, "SELECT pg_sleep(2)")) < 1.5
    with psycopg.connect(postgres.dsn) as connection:
        count = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tidegate capacity'"
        ).fetchone()
    assert count == (0,)


def test_what_still_runs_when_postgresql_is_closed_is_cancelled(postgres: PostgresServer) -> None:
    target = postgres_target(postgres, "SELECT pg_sleep(20)")
    running = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(20)' AND state = 'active'"

    async def work() -> int:
        await target.open()
        asking = [asyncio.create_task(target.ask(number)) for number in range(3)]
        async with await psycopg.AsyncConnection.connect(postgres.dsn, autocommit=True) as watching:

            async def count() -> int:
                row = await (await watching.execute(running)).fetchone()
                assert row is not None
                return int(row[0])

            while await count() < 3:
                await asyncio.sleep(0.01)
            for task in asking:
                task.cancel()  # as an interrupted run does, which waits for none of them
            await target.close()
            deadline = asyncio.get_running_loop().time() + 5
            while (left := await count()) and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0.01)
            await asyncio.gather(*asking, return_exceptions=True)
        return left

    assert asyncio.run(work()) == 0


def test_a_connection_that_is_gone_is_not_used_again(postgres: PostgresServer) -> None:
    statement = "SELECT CASE WHEN %(n)s::int = 0 THEN pg_terminate_backend(pg_backend_pid()) END"
    target = postgres_target(postgres, statement)

    async def work() -> list[str | None]:
        return [await target.ask(number) for number in range(3)]

    first, *others = with_target(target, work)
    assert first is not None
    assert others == [None, None]


def test_no_more_than_postgresql_has_connections_left(postgres: PostgresServer) -> None:
    target = postgres_target(postgres, "SELECT 1")

    async def work() -> int | None:
        return target.most_in_flight

    most = with_target(target, work)
    assert 150 < most < 200  # of the 200 of the tests' server


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda dsn: dsn.replace("postgres@", "nobody_here@"), "Check the names"),
        (lambda dsn: dsn.rpartition("/")[0] + "/nowhere", "Check the names"),
    ],
)
def test_what_keeps_postgresql_from_answering_is_said(
    postgres: PostgresServer, change: Callable[[str], str], says: str
) -> None:
    dsn = change(postgres.dsn)
    assert dsn != postgres.dsn
    with pytest.raises(TargetError, match=says):
        ask(PostgresTarget(dsn, "SELECT 1", Rows.none()))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_a_postgresql_that_is_not_there_is_said_without_the_password() -> None:
    target = PostgresTarget(f"postgresql://me:secret@127.0.0.1:{free_port()}/db", "SELECT 1", Rows.none())
    with pytest.raises(TargetError, match="Nobody listens there") as caught:
        ask(target)
    assert "secret" not in str(caught.value)
    assert "secret" not in str(target.describe())


# --- URLs --------------------------------------------------------------------------------------------


@pytest.fixture
def app() -> Iterator[tuple[str, list[tuple[str, str, str, str]]]]:
    app = FastAPI()
    seen: list[tuple[str, str, str, str]] = []

    @app.api_route("/{path:path}", methods=["GET", "POST"])
    async def any_path(path: str, request: Request, status: int = 200, seconds: float = 0) -> Response:
        body = (await request.body()).decode()
        seen.append((request.method, f"{path}?{request.url.query}", request.headers.get("x-key", ""), body))
        await asyncio.sleep(seconds)
        return Response(f"answer to {path}", status)

    with serving(app) as place:
        yield f"http://{place}", seen


def url(url: str, data: Path | None = None, **more: Any) -> UrlTarget:
    return UrlTarget(Sent(url, **more), Rows.none() if data is None else Rows.read(data), 20)


def test_a_url_is_asked_with_rows_in_its_places(app: Any, tmp_path: Path) -> None:
    place, seen = app
    data = tmp_path / "words.csv"
    data.write_text("word\na b&c\n")
    target = url(
        f"{place}/orders/$n?q=$word",
        data,
        method="POST",
        headers=[("X-Key", "k-$word")],
        body='{"word": "$word", "price": "$$1"}',
    )
    assert ask(target) == [None]
    assert seen == [("POST", "orders/0?q=a%20b%26c", "k-a b&c", '{"word": "a b&c", "price": "$1"}')]


def test_what_a_good_answer_is(app: Any) -> None:
    place, _ = app
    assert ask(url(f"{place}/x?status=500")) == ["HTTP 500"]
    assert ask(url(f"{place}/x?status=404", statuses=((200, 200), (404, 404)))) == [None]
    assert ask(url(f"{place}/x", contains="to x")) == [None]
    assert ask(url(f"{place}/x", contains="to y")) == ["HTTP 200 without 'to y' in its body"]


def test_a_request_that_is_withdrawn_ends_at_once(app: Any) -> None:
    place, _ = app
    assert withdraw(url(f"{place}/x?seconds=5")) < 2


def test_a_redirect_is_no_good_answer_unless_it_is_said_to_be() -> None:
    app = FastAPI()

    @app.get("/old", status_code=302)
    async def old() -> None:
        """Sent elsewhere."""

    with serving(app) as place:
        assert ask(url(f"http://{place}/old")) == ["HTTP 302"]
        assert ask(url(f"http://{place}/old", statuses=[(302, 302)])) == [None]


def test_bodies_are_not_kept() -> None:
    app = FastAPI()
    part, parts = b"x" * 2**16, 512

    @app.get("/")
    async def large() -> StreamingResponse:
        return StreamingResponse(part for _ in range(parts))

    with serving(app) as place:
        assert ask(url(f"http://{place}/")) == [None]  # what is imported on the way is not to be counted
        tracemalloc.start()
        try:
            assert ask(url(f"http://{place}/")) == [None]
            assert tracemalloc.get_traced_memory()[1] < len(part) * parts / 4
        finally:
            tracemalloc.stop()


def test_nobody_there() -> None:
    assert ask(url(f"http://127.0.0.1:{free_port()}/")) == ["connection refused"]


def test_no_url_to_send_to() -> None:
    with pytest.raises(TargetError, match="no URL"):
        ask(url("http://host:99999999/"))


@pytest.mark.parametrize(
    "shown",
    [
        "postgresql://host/db?password=swordfish",
        "postgresql://host/db?user=me&password=swordfish&sslmode=require",
        "http://host/?page=2&api_key=swordfish",
        "http://host/?X-Amz-Signature=swordfish",
        "http://host/?access_token=swordfish#here",
        "http://me:swordfish@[host/",
    ],
)
def test_secrets_in_urls_are_not_shown(shown: str) -> None:
    assert without_password(shown) == shown.replace("swordfish", "***").replace("me:***", "***")


def test_a_host_that_can_be_no_name_is_said() -> None:
    with pytest.raises(TargetError, match="Check the DSN"):
        ask(PostgresTarget(f"postgresql://{'a' * 80}.x/db", "SELECT 1", Rows.none()))


def test_passwords_in_urls_are_not_shown() -> None:
    assert url("http://me:secret@host/a?b=c").describe()["url"] == "http://me:***@host/a?b=c"


# --- rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no rows"),
        ("id\n", "has no rows"),
        ("id,name\n1\n", "Row 1 of .* has 1 cells, and its heading 2"),
        ("n\n1\n", "names of their own"),
        ("a,a\n1,2\n", "names of their own"),
    ],
)
def test_a_file_of_rows_that_cannot_be_used(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(TargetError, match=says):
        Rows.read(path)


def test_a_cell_in_quotes_is_kept_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes('\ufeffid,text\r\n1,"two\nlines, ""quoted"""\r\n\r\n2,a\u2028b\x0cc\r\n'.encode())
    rows = Rows.read(path)
    assert rows[0] == {"id": "1", "text": 'two\nlines, "quoted"'}
    assert rows[1] == {"id": "2", "text": "a\u2028b\x0cc"}


@pytest.mark.parametrize(
    ("text", "says"), [("/$id", "no row has: there is \\$n"), ("cost: $ 5", "begins no name")]
)
def test_places_for_what_no_row_has(text: str, says: str) -> None:
    with pytest.raises(TargetError, match=says):
        url(f"http://host{text}")


def test_requests_that_are_withdrawn_at_once_end_too() -> None:
    async def main() -> None:
        target = function("slowly_async")
        await target.open()
        try:
            for turns in range(20):
                asking = [asyncio.create_task(target.ask(number)) for number in range(20)]
                for _ in range(turns % 4):
                    await asyncio.sleep(0)
                for one in asking:
                    one.cancel()
                _, left = await asyncio.wait(asking, timeout=10)
                assert not left
        finally:
            await target.close()

    asyncio.run(main())


def test_a_closed_target_is_not_waited_for() -> None:
    async def main() -> None:
        target = function("nothing")
        await target.open()
        await target.close()
        with pytest.raises(TargetError, match="process ended"):
            await target.ask(0)

    asyncio.run(main())
