"""The engine under Django's own request handlers, test runner and commands."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("django", reason="Django is not installed", exc_type=ImportError)
pytest.importorskip("psycopg", reason="psycopg is not installed", exc_type=ImportError)

import psycopg
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.db import connections, transaction
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory
from django.test.utils import override_settings
from django.urls import path
from djangokit import Register, pooled, postgresql, register, select
from gatekit import PATIENCE, assert_at_rest, in_thread, released, shed
from tidegate import Gate, Shed

__all__ = ["register"]  # a fixture
leak = pytest.mark.leak
LOCK = 13


class Answer503:
    """As the middleware does it."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: Any, exception: Exception) -> HttpResponse | None:
        return HttpResponse(status=503) if isinstance(exception, Shed) else None


def plain(request: Any) -> HttpResponse:
    return HttpResponse(str(select(connections["gated"])))


def atomic(request: Any) -> HttpResponse:
    with transaction.atomic("gated"):
        return plain(request)


def bug(request: Any) -> HttpResponse:
    plain(request)
    raise KeyError


def stream(request: Any) -> StreamingHttpResponse:
    def parts() -> Iterator[str]:
        for part in "ab":
            select(connections["gated"])
            yield part

    return StreamingHttpResponse(parts())


async def asynchronous(request: Any) -> HttpResponse:
    return HttpResponse(str(await sync_to_async(lambda: select(connections["gated"]))()))


async def slow(request: Any) -> HttpResponse:
    """As slow as a test has it that keeps the lock: its thread nobody can cancel."""
    await sync_to_async(lambda: select(connections["gated"], f"pg_advisory_lock({LOCK})"))()
    return HttpResponse()


urlpatterns = [
    path(view.__name__, view) for view in (plain, atomic, bug, stream, asynchronous, slow)
]  # fmt: skip
with_urls = override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=[f"{__name__}.Answer503"])


def get(name: str) -> tuple[int, bytes]:
    """Status and body, as a WSGI server gets them."""
    statuses: list[str] = []
    environ = RequestFactory().get(f"/{name}").environ
    response = WSGIHandler()(environ, lambda status, headers: statuses.append(status))
    try:
        body = b"".join(response)
    finally:
        response.close()
    return int(statuses[0].split()[0]), body


async def get_async(name: str, gone: asyncio.Event | None = None) -> int | None:
    """The status, as an ASGI server gets it; None where the client was gone first."""
    statuses: list[int] = []
    requested = False

    async def receive() -> dict[str, Any]:
        nonlocal requested
        if not requested:
            requested = True
            return {"type": "http.request", "body": b""}
        await (gone or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {"type": "http", "method": "GET", "path": f"/{name}", "headers": [], "query_string": b""}
    await ASGIHandler()(scope, receive, send)
    return statuses[0] if statuses else None


@pytest.mark.parametrize("kind", [postgresql, pooled])
@with_urls
def test_a_request_holds_a_permit_until_its_end(gate: Gate, register: Register, dsn: str, kind: Any) -> None:
    register(kind(dsn))
    for name, body in (("plain", b"1"), ("atomic", b"1"), ("stream", b"ab"), ("asynchronous", b"1")):
        assert in_thread(lambda name=name: get(name)) == (200, body)
        assert gate.in_flight == 0
    assert released(gate.stats()) == {"success": 4}
    assert_at_rest(gate)


@pytest.mark.parametrize("name", ["plain", "atomic", "asynchronous"])
@with_urls
def test_a_shed_reaches_the_middleware(gate: Gate, register: Register, dsn: str, name: str) -> None:
    register(postgresql(dsn))
    with gate, gate:
        assert in_thread(lambda: get(name))[0] == 503
    assert shed(gate.stats()) == 1
    assert_at_rest(gate)


@with_urls
def test_atomic_requests(gate: Gate, register: Register, dsn: str) -> None:
    """Django opens the transaction before it calls the view."""
    register(postgresql(dsn, ATOMIC_REQUESTS=True))
    assert in_thread(lambda: get("plain")) == (200, b"1")
    with gate, gate:
        assert in_thread(lambda: get("plain"))[0] == 503
    assert_at_rest(gate)


@leak("django-engine", "exception")
@with_urls
def test_a_view_that_raises(gate: Gate, register: Register, dsn: str) -> None:
    register(postgresql(dsn))
    assert in_thread(lambda: get("bug"))[0] == 500
    assert_at_rest(gate)


@leak("django-engine", "client-gone")
@with_urls
def test_a_client_that_leaves_a_stream(gate: Gate, register: Register, dsn: str) -> None:
    register(postgresql(dsn))

    def leave() -> None:
        response = WSGIHandler()(RequestFactory().get("/stream").environ, lambda status, headers: None)
        assert next(iter(response)) == b"a"
        assert gate.in_flight == 1
        response.close()

    in_thread(leave)
    assert_at_rest(gate)


@with_urls
def test_under_asgi(gate: Gate, register: Register, dsn: str) -> None:
    register(postgresql(dsn))

    async def main() -> None:
        for name in ("plain", "atomic", "asynchronous"):
            assert await get_async(name) == 200
            assert gate.in_flight == 0
        with gate, gate:
            assert await get_async("asynchronous") == 503

    asyncio.run(main())
    assert_at_rest(gate)


@leak("django-engine", "cancel-after")
@pytest.mark.parametrize("kind", [postgresql, pooled])
@with_urls
def test_a_client_that_leaves_during_the_query(gate: Gate, register: Register, dsn: str, kind: Any) -> None:
    register(kind(dsn))

    async def main() -> None:
        gone = asyncio.Event()
        request = asyncio.create_task(get_async("slow", gone))
        try:
            await until(lambda: gate.in_flight == 1)
            gone.set()
            await turns()
            assert gate.in_flight == 1, "the thread is still in its query"
        finally:
            keeper.execute("select pg_advisory_unlock(%s)", [LOCK])
        assert await request is None
        assert gate.in_flight == 0, "the thread has finished its query, and Django has closed the connection"

    with psycopg.connect(dsn, autocommit=True) as keeper:
        keeper.execute("select pg_advisory_lock(%s)", [LOCK])
        asyncio.run(main())
    assert_at_rest(gate)


@leak("django-engine", "cancel-in")
@with_urls
def test_a_client_that_leaves_while_its_thread_waits_for_the_pool(
    gate: Gate, register: Register, dsn: str
) -> None:
    connection = register(pooled(dsn, max_size=1))
    select(connection)

    async def main() -> None:
        gone = asyncio.Event()
        request = asyncio.create_task(get_async("asynchronous", gone))
        await until(lambda: connection.pool.get_stats().get("requests_waiting", 0) == 1)
        gone.set()
        await turns()
        assert gate.in_flight == 2, "the thread still waits"
        await asyncio.to_thread(give_back)
        assert await request is None
        assert gate.in_flight == 0

    def give_back() -> None:
        connection.inc_thread_sharing()
        connection.close()
        connection.dec_thread_sharing()

    asyncio.run(main())
    assert_at_rest(gate)


@leak("django-engine", "cancel-before")
@with_urls
def test_a_client_that_leaves_before_the_view_begins(gate: Gate, register: Register, dsn: str) -> None:
    register(postgresql(dsn))

    async def main() -> None:
        gone = asyncio.Event()
        gone.set()
        await get_async("asynchronous", gone)
        assert gate.in_flight == 0

    asyncio.run(main())
    assert_at_rest(gate)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)


# --- processes of their own ------------------------------------------------------------------------


@leak("django-engine", "keyboard-interrupt")
def test_interrupts_around_connect_and_close(tmp_path: Path) -> None:
    """Hundreds of real signals, each followed by what Django does at a request's end."""
    seed = os.environ.get("TIDEGATE_SEED", str(random.randrange(2**32)))
    print(f"TIDEGATE_SEED={seed}")
    script = Path(__file__).with_name("django_interrupts.py")
    command = [sys.executable, script, tmp_path / "db.sqlite3", seed]
    storm = subprocess.run(command, capture_output=True, text=True, check=False)
    assert storm.returncode == 0, storm.stderr
    told = json.loads(storm.stdout)
    assert (told["in_flight"], told["whole"]) == (0, True), told
    assert told["interrupted"] >= 100, told


@pytest.mark.parametrize("engine", ["postgresql", "sqlite3"])
def test_djangos_test_runner_and_commands(dsn: str, tmp_path: Path, engine: str) -> None:
    """Test databases are created, used, flushed and dropped; one connection is enough for all commands."""
    entry = {"NAME": str(tmp_path / "db.sqlite3")} if engine == "sqlite3" else postgresql(dsn)
    site = Path(__file__).with_name("django_site.py")
    run = subprocess.run(
        [sys.executable, "-W", "error", site],
        input=json.dumps({**entry, "ENGINE": f"tidegate.django.{engine}", "TIDEGATE": {"limit": 1}}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    permits = int(engine == "postgresql")  # SQLite's test database is in memory and passes without
    assert told == {"tests": 2, "in_flight": 0, "high_water": permits}
