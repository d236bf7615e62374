"""The C++ chatbot on a real PostgreSQL: what it answers, whom it turns away, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("psycopg_pool", reason='PostgreSQL needs: pip install "tidegate[demo]"')

import psycopg
from tidegate.demo import postgres_server
from tidegate.demo.chatbot import Chatbot
from tidegate.demo.database import Address
from tidegate.demo.home import home
from tidegate.demo.postgres import PostgresDatabase

if postgres_server.installed() is None:
    pytest.skip('PostgreSQL needs: pip install "tidegate[demo]"', allow_module_level=True)

ROOT = Path(__file__).parents[3]
DEPTH = 500
BUSY = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"


@pytest.fixture(scope="module")
def program() -> Path:
    build = subprocess.run(
        [ROOT / "scripts" / "build_cpp_chatbot.sh"], capture_output=True, text=True, check=False
    )
    if build.returncode == 2:
        pytest.skip(f"NOT TESTED: {build.stderr.strip()}")
    assert build.returncode == 0, build.stderr
    return ROOT / build.stdout.strip()


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with home("postgres", None) as address:
        PostgresDatabase(address.location).build()
        yield address


class Answer(NamedTuple):
    status: int
    headers: Message
    text: str


class Backend:
    """The program, running."""

    def __init__(self, program: Path, address: Address, *options: str) -> None:
        self.address = address
        self.process = subprocess.Popen(
            [program, "--port", "0", "--depth", str(DEPTH), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "DATABASE_URL": address.location},
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def get(self, path: str, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())
        finally:
            connection.close()

    def end(self) -> int:
        """By SIGTERM: the exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        return self.process.returncode


@contextmanager
def running(program: Path, address: Address, *options: str) -> Iterator[Backend]:
    backend = Backend(program, address, *options)
    try:
        yield backend
    finally:
        backend.process.kill()
        backend.process.communicate()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def stuck(backend: Backend, *paths: str) -> Iterator[list[int]]:
    """Requests at work while the block runs, as the database waits for a lock; their statuses."""
    statuses: list[int] = []
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    requests = [
        threading.Thread(target=lambda path=path: statuses.append(backend.get(path).status)) for path in paths
    ]
    with (
        psycopg.connect(backend.address.location) as lock,
        psycopg.connect(backend.address.location) as look,
    ):
        look.autocommit = True
        lock.execute("LOCK TABLE message IN ACCESS EXCLUSIVE MODE")
        for request in requests:
            request.start()
        until(lambda: look.execute(waiting).fetchone() == (len(paths),))
        yield statuses
    for request in requests:
        request.join()


def test_it_answers_as_the_backend_in_python(program: Path, address: Address) -> None:
    with running(program, address) as backend:
        with closing(PostgresDatabase(address.location).connect()) as connection:
            bot = Chatbot(connection, DEPTH)
            for conversation in (1, 2):
                answer = backend.get(f"/answer/{conversation}")
                assert (answer.status, answer.text.splitlines()) == (200, bot.answer(conversation))
        assert backend.get("/suggestions/1").status == 200
        assert backend.get("/answer/999999999").status == 200
        assert backend.get("/answer/x").status == 404
        assert backend.end() == 0


def test_the_gate_keeps_a_quarter_for_essential_requests(program: Path, address: Address) -> None:
    with running(program, address, "--limit", "4", "--connections", "4") as backend:
        with stuck(backend, "/suggestions/1", "/suggestions/2", "/answer/3") as statuses:
            for path, priority in (
                ("/suggestions/4", {}),
                ("/answer/4", {"X-Priority": "non-essential"}),
                ("/suggestions/4", {"X-Priority": "critical_plus"}),  # never more important than the route
            ):
                shed = backend.get(path, **priority)
                assert shed.status == 503
                assert shed.headers["Content-Type"] == "application/problem+json"
                problem = json.loads(shed.text)
                assert (problem["type"], problem["status"], problem["reason"]) == (BUSY, 503, "priority")
                assert shed.headers["Retry-After"] == str(problem["retry_after"])
                assert problem["retry_after"] in (1, 2)
        assert statuses == [200, 200, 200]
        with stuck(backend, *["/answer/1"] * 4):
            shed = backend.get("/answer/2")
            assert json.loads(shed.text)["reason"] == "limit"
        assert backend.get("/suggestions/1").status == 200


def test_what_is_admitted_beyond_the_pool_waits_inside(program: Path, address: Address) -> None:
    with running(program, address, "--limit", "8", "--connections", "1") as backend:
        answers: list[int] = []
        with stuck(backend, "/answer/1") as statuses:
            more = [threading.Thread(target=lambda: answers.append(backend.get("/answer/2").status))]
            more[0].start()
        more[0].join()
        assert statuses == answers == [200]


def test_an_error_of_the_database_is_a_500_and_frees_the_permit(program: Path, address: Address) -> None:
    with running(program, address, "--limit", "1", "--connections", "1") as backend:
        with psycopg.connect(address.location) as connection:
            connection.execute("ALTER TABLE message RENAME TO elsewhere")
            connection.commit()
            for _ in range(3):
                assert backend.get("/answer/1").status == 500
            connection.execute("ALTER TABLE elsewhere RENAME TO message")
            connection.commit()
        assert backend.get("/answer/1").status == 200
        with psycopg.connect(address.location, autocommit=True, application_name="killer") as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
                (PostgresDatabase(address.location).name,),
            )
        until(lambda: backend.get("/answer/1").status == 200)  # the session is made anew


def test_it_drains_before_it_ends(program: Path, address: Address) -> None:
    with running(program, address) as backend:
        with stuck(backend, "/answer/1") as statuses:
            backend.process.send_signal(signal.SIGTERM)
            until(lambda: "closed" in backend.get("/answer/2").text)
        assert statuses == [200]
        assert backend.end() == 0


def test_with_a_parent_it_ends_with_its_input(program: Path, address: Address) -> None:
    variables = {**os.environ, "DATABASE_URL": address.location}
    command = [program, "--port", "0", "--with-parent"]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=variables, check=False)
    assert ended.returncode == 0
    assert ended.stdout.startswith(b"listening on http://127.0.0.1:")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--limit", "-1"], "--limit must be a whole number from 1, got -1"),
        (["--limit", "4294967301"], "--limit must be a whole number from 1, got 4294967301"),
        (["--depth", "1.5"], "--depth must be a whole number from 1, got 1.5"),
        (["--door", "ajar"], "--door must be tidegate, semaphore or none, got ajar"),
        (["--door"], "--door needs a value"),
        (["--speed", "9"], "unknown option --speed"),
    ],
)
def test_bad_options_are_told(program: Path, address: Address, options: list[str], said: str) -> None:
    variables = {**os.environ, "DATABASE_URL": address.location}
    ended = subprocess.run([program, *options], capture_output=True, text=True, env=variables, check=False)
    assert (ended.returncode, ended.stderr) == (2, f"cpp-chatbot: {said}\n")


def test_without_a_database_it_says_so(program: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    ended = subprocess.run([program], capture_output=True, text=True, env=variables, check=False)
    assert (ended.returncode, ended.stderr) == (2, "cpp-chatbot: DATABASE_URL is not set\n")
    lost = {**variables, "DATABASE_URL": "postgresql://127.0.0.1:1/chat"}
    ended = subprocess.run([program], capture_output=True, text=True, env=lost, check=False)
    assert ended.returncode == 1
    assert "127.0.0.1" in ended.stderr


def test_the_demo_drives_it(program: Path) -> None:
    """In a run too short to show what it has to show."""
    command = [sys.executable, "-m", "tidegate.cli", "demo", "--backend", str(program), "--json", "-"]
    short = ["--loads", "4", "--seconds", "0.6", "--timeout", "0.3"]
    ended = subprocess.run([*command, *short], capture_output=True, text=True, timeout=120, check=False)
    found = json.loads(ended.stdout)
    assert ended.returncode == (0 if found["verdict"].startswith("Holds") else 1), ended.stderr
    assert found["database"] == "postgres"
    assert [row["arm"] for row in found["loads"]] == ["ungated", "stock", "semaphore", "tidegate"]
    for row in found["loads"]:
        assert row["good"] + row["late"] + row["shed"] == row["offered"] > 0
        assert (row["shed"] == 0) == (row["arm"] in ("ungated", "stock"))
    assert found["active_backends"]["max"] > 15
