"""The command from outside: its arguments, one short run on the real database, and how it is interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from demokit import needs_proc, processes, start, wait_until
from tidegate.cli import main


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["demo", "--loads", "none"],
        ["demo", "--loads", "0.5,0"],
        ["demo", "--seconds", "-1"],
        ["demo", "--timeout", "inf"],
        ["demo", "--arrivals", "none"],
        ["demo", "--arrivals", "poisson", "--trace", "file"],
        ["demo", "--limit", "0"],
        ["demo", "--limit", "1.5"],
        ["demo", "--json", "/nowhere/file"],
        ["demo", "--limit", "auto", "--backend", "there"],
        ["demo", "--database", "none"],
        ["demo", "--database", "sqlite", "--dsn", "postgresql://somewhere"],
        ["demo", "--html", "/nowhere/file"],
    ],
)
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "usage: " in capsys.readouterr().out


def test_a_bad_trace_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--trace", str(tmp_path / "none.csv")]) == 1
    assert "cannot read" in capsys.readouterr().err


def test_without_rich_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["demo"]) == 2
    assert 'pip install "tidegate[cli]"' in capsys.readouterr().err


def test_the_package_itself_needs_nothing_of_this() -> None:
    script = "import sys, tidegate; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"rich", "sqlite3", "psycopg", "tidegate.cli", "tidegate.demo"} & set(loaded)


def test_a_short_run(tmp_path: Path) -> None:
    running = start(
        tmp_path, "--loads", "4", "--seconds", "0.6", "--timeout", "0.3", "--json", "-", "--seed", "3"
    )
    out, err = running.communicate(timeout=60)
    found = json.loads(out)
    # Whether the claims hold in windows this short on a busy machine is not the question here.
    assert running.returncode == (0 if found["verdict"].startswith("Holds") else 1), err
    assert err.splitlines()[-1] == found["verdict"]
    assert (found["database"], found["seed"], found["timeout"]) == ("sqlite", 3, 0.3)
    assert found["best_per_s"] == max(level["per_s"] for level in found["curve"])
    assert found["limit"] == max(8, int(found["best_per_s"] * 0.1))
    assert found["reference"]["load"] == 4.0
    assert found["reference"]["pairs"] >= 5
    assert found["reference"]["goodput_ratio"] > 0
    assert found["active_backends"] is None
    assert [row["arm"] for row in found["loads"]] == ["ungated", "semaphore", "tidegate"]
    for row in found["loads"]:
        assert row["good"] + row["late"] + row["shed"] == row["offered"] > 0
        assert row["essential"]["good"] <= row["essential"]["offered"] < row["offered"]
    ungated, semaphore, tidegate = found["loads"]
    assert ungated["shed"] == 0
    # The same users came to both; only retries could differ, and who is shed does not retry.
    assert semaphore["shed"] > 0 and tidegate["shed"] > 0
    assert not processes(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_short_run_that_finds_its_limit(tmp_path: Path) -> None:
    arguments = ("--limit", "auto", "--loads", "0.5,2", "--seconds", "0.4", "--timeout", "0.3")
    running = start(tmp_path, *arguments, "--json", "-")
    out, err = running.communicate(timeout=120)
    found = json.loads(out)
    assert running.returncode == (0 if found["verdict"].startswith(("Holds", "Nothing")) else 1), err
    arms = ["ungated", "semaphore", "tidegate", "auto"]
    assert [(row["load"], row["arm"]) for row in found["loads"]] == [
        (x, arm) for x in (0.5, 2.0) for arm in arms
    ]
    for row in found["loads"]:
        assert row["good"] + row["late"] + row["shed"] == row["offered"] > 0
    (auto,) = found["auto"]  # at half load there is nothing to find
    assert (auto["load"], auto["pairs"], auto["searched"]) == (2.0, 5, 2.0)
    assert auto["goodput_ratio"] >= 0
    assert auto["time_to_95"] is None or auto["time_to_95"] > 0
    assert auto["essential"]["good"] <= auto["essential"]["offered"]
    assert 1 <= auto["limit"] <= 1_000
    assert all(move["cause"] in ("raise", "lower", "lost") and move["at"] >= 0 for move in auto["moves"])
    assert not processes(tmp_path)
    assert not list(tmp_path.iterdir())


@needs_proc
@pytest.mark.parametrize(("stop", "living"), [(signal.SIGINT, 1), (signal.SIGTERM, 2), (signal.SIGINT, 3)])
def test_interrupted_it_leaves_nothing(tmp_path: Path, stop: signal.Signals, living: int) -> None:
    """While it writes the database (1 process), measures it (2), and overloads the ungated backend (3)."""
    running = start(tmp_path, "--loads", "4", "--seconds", "0.4", "--timeout", "5")
    wait_until(lambda: list(tmp_path.iterdir()) and len(processes(tmp_path)) >= living)
    running.send_signal(stop)
    _, err = running.communicate(timeout=15)
    assert running.returncode == 130
    assert err.splitlines()[-1] == "tidegate: interrupted"
    assert "Traceback" not in err
    assert not processes(tmp_path)
    assert not list(tmp_path.iterdir())


@needs_proc
def test_killed_outright_it_leaves_no_process(tmp_path: Path) -> None:
    running = start(tmp_path, "--loads", "4", "--seconds", "0.4", "--timeout", "5")
    wait_until(lambda: len(processes(tmp_path)) >= 2)
    running.kill()
    running.communicate(timeout=15)
    wait_until(lambda: not processes(tmp_path))
