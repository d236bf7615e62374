"""`tidegate capacity` as a command."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tidegate
from demokit import needs_proc
from fastapi import FastAPI
from loopback import serving
from reportkit import Reader
from test_capacity_targets import free_port
from tidegate.cli import main

HERE = Path(__file__).parent
SHORT = [
    *("--timeout", "2s", "--stage", "0.5s", "--cell", "0.5s", "--warm-up", "0.1s"),
    *("--max-lag", "10s", "--max-in-flight", "48"),
]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def run(*arguments: str) -> int:
    return main(["capacity", *arguments])


# --- the command line --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name a target to test, or --simulate"),
        (["http://host/", "--simulate"], "name a target to test, or --simulate"),
        (["ftp://host/"], "is no target"),
        (["no function"], "is no target"),
        (["postgresql://host/db"], "a database needs a statement"),
        (["http://host/", "--sql", "SELECT 1"], "--sql goes with a database"),
        (["m:f", "--method", "POST"], "--method goes with a URL"),
        (["m:f", "--kappa", "0.1"], "--kappa goes with --simulate"),
        (["--simulate", "--log", "x.jsonl"], "--log does not go with --simulate"),
        (["--simulate", "--stage", "5s"], "--stage does not go with --simulate"),
        (["--simulate", "--overload", "3"], "--overload does not go with --simulate"),
        (["--simulate", "--no-proof"], "--no-proof does not go with --simulate"),
        (["--simulate", "--max-rate", "1/s"], "--max-rate does not go with --simulate"),
        (["--simulate", "--accept", "0"], "accept must be a number above 0"),
        (["--simulate", "--service", "pareto"], "service must be one of"),
        (["--simulate", "--lambda", "1e300"], "must be a number from"),
        (["--simulate", "--png", "missing/x.png"], "there is no folder missing"),
        (["--simulate", "--png", "x.xyz"], "must end in one of"),
        (["m:f", "--article", "--stages", "1,2"], "--article is --stages and --stage already"),
        (["m:f", "--stages", "1,2", "--start-rate", "1"], "--start-rate does not go with stages"),
        (["m:f", "--no-bisect"], "--no-bisect goes with"),
        (["m:f", "--stages", "2,1"], "the rates must grow"),
        (["m:f", "--stages", "0,0/min"], "the rates must grow"),
        (["m:f", "--timeout", "0"], "must be above 0"),
        (["m:f", "--timeout", "nan"], "is not a duration"),
        (["m:f", "--timeout", "5 days"], "unit must be ms, s, min or h"),
        (["m:f", "--max-rate", "-1"], "is not a rate"),
        (["m:f", "--max-rate", "5/day"], "unit must be /s, /min or /h"),
        (["m:f", "--max-in-flight", "0"], "whole number from 1 to 100000"),
        (["m:f", "--essential", "1"], "not a number between 0 and 1"),
        (["m:f", "--overload", "inf"], "not a number above 1"),
        (["m:f", "--seed", "-1"], "whole number"),
        (["m:f", "--trace", "t.csv"], "--trace goes with --arrivals trace"),
        (["m:f", "--log", "a", "--resume", "a"], "leave out --log"),
        (["m:f", "--json", "a", "--toml", "a"], "--json and --toml need different files"),
        (["m:f", "--json", "-", "--toml", "-"], "--json and --toml need different files"),
        (["m:f", "--data", "a", "--json", "a"], "--json a would overwrite what is read"),
        (["m:f", "--data", "missing.csv", "--preview"], "Cannot read"),
        (["m:f", "--ci", "missing.json"], "cannot read missing.json"),
        (["m:f", "--resume", "missing.jsonl", "--yes"], "cannot read missing.jsonl"),
        (["http://host/$x"], r"no row has"),
        (["http://host/", "--header", "nothing"], "has no colon"),
        (["http://host/", "--status", "99"], "is no status"),
        (["http://host/", "--status", "300-200"], "ends before it begins"),
        (["http://host/", "--body", "@missing"], "cannot read missing"),
        (["m:f"], "nobody can be asked"),
    ],
)
def test_usage_errors(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert re.search(says, capsys.readouterr().err.replace("\n", " "))


@pytest.fixture
def service() -> Iterator[tuple[str, list[str]]]:
    app = FastAPI()
    seen: list[str] = []

    @app.get("/{path:path}")
    async def any_path(path: str) -> str:
        seen.append(path)
        return "ok"

    with serving(app) as place:
        yield f"http://{place}", seen


def test_a_preview_says_what_would_be_sent_and_sends_nothing(
    service: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    place, seen = service
    url = place.replace("//", "//me:secret@")
    assert run(f"{url}/orders", "--article", "--max-in-flight", "77", "--preview", "--accept", "90") == 0
    said = capsys.readouterr().err
    assert "secret" not in said
    for part in ("GET http://me:***@", "0.00/min, 10.0/min, 20.0/min, 40.0/min, 80.0/min, 150/min in turn"):
        assert part in said
    for part in ("each for 15.0 min", "77 in flight", "at most   200/s", "90.0/min", "3.00 min", "Ctrl-C"):
        assert part in said
    assert seen == []


def test_a_statement_that_changes_data_is_pointed_out(capsys: pytest.CaptureFixture[str]) -> None:
    for statement, changes in (("DELETE FROM t", True), ("SELECT 1", False)):
        run("sqlite:///x.db", "--sql", statement, "--preview")
        assert ("may change data" in capsys.readouterr().err) is changes


# --- runs --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one run, with everything on."""
    folder = tmp_path_factory.mktemp("run")
    files = [f"--{kind}={folder}/run.{kind}" for kind in ("json", "html", "toml", "png")]
    ran = subprocess.run(
        [*COMMAND, TARGET, *SHORT, "--yes", "--max-rate", "2000/s", *files, f"--log={folder}/run.jsonl"],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    (folder / "stdout").write_text(ran.stdout)
    (folder / "stderr").write_text(ran.stderr)
    (folder / "code").write_text(str(ran.returncode))
    return folder


COMMAND = [sys.executable, "-m", "tidegate.cli", "capacity"]
TARGET = "served_functions:degrading"

# Whoever runs the tests in the background of a shell has them ignore Ctrl-C, and what they start, too.
INTERRUPTIBLE = [
    *(sys.executable, "-c"),
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from tidegate.cli import main; sys.exit(main())",
    "capacity",
]


def figures(folder: Path, name: str = "run.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text())
    return found


def test_a_run_finds_a_limit(whole: Path) -> None:
    found = figures(whole)
    assert found["limit"] is not None, (whole / "stderr").read_text()
    low, high = found["limit_interval"]
    assert low <= found["limit"] <= high
    assert found["capacity"]["interval"][0] <= found["capacity"]["per_min"]
    assert {"breaking_point", "rate", "error_upper", "gated_error", "accepted", "verdict"} <= found.keys()
    assert found["run"]["plan"]["timeout"] == 2.0
    assert found["verdict"] in (whole / "stdout").read_text()
    for step in found["steps"]:
        parts = [step[name] for name in ("shed", "good", "late", "failed", "withdrawn")]
        assert step["offered"] == sum(parts)
        assert min(parts) >= 0


def test_the_page_needs_no_network_and_says_it_all(whole: Path) -> None:
    html = (whole / "run.html").read_text()
    reader = Reader(html)
    found = figures(whole)
    assert found["verdict"] in reader.visible
    assert reader.islands["figures"] == found
    assert set(re.findall(r"\w+://[\w./-]+", html)) == {"https://github.com/leeoniya/uPlot"}  # its licence
    for part in (
        "The ramp",
        "Behind a gate, by its limit",
        "Before and after",
        "breaking point lies between",
    ):
        assert part in reader.visible
    for part in (f"tidegate capacity {TARGET} --timeout 2s", "--seed 1", tidegate.__version__, "limit ="):
        assert part in reader.visible
    titles = [chart["xLabel"] for chart in reader.islands["charts"]]
    assert titles.count("offered a minute") >= 3
    [curve] = [chart for chart in reader.islands["charts"] if chart["xLabel"] == "in flight"]
    assert [line["draw"] for line in curve["lines"]] == ["points", "line", "line", "line"]
    cells = [step["good_per_min"] for step in found["steps"] if step["phase"] == "sweep"]
    assert sorted(value for value in curve["lines"][0]["values"] if value is not None) == sorted(cells)
    for fitted, low, high in zip(*(line["values"] for line in curve["lines"][1:]), strict=True):
        assert fitted is None or low <= fitted <= high


def test_the_recommendation_is_a_configuration(whole: Path) -> None:
    text = (whole / "run.toml").read_text()
    gate = tomllib.loads(text)["gates"]["db"]
    found = figures(whole)
    assert gate["limit"] == found["limit"] == gate["controller"]["prior"]
    loaded = tidegate.load(whole / "run.toml")["db"]
    assert loaded.limit == found["limit"] and loaded.objective is not None
    assert loaded.controller is not None and loaded.controller.prior == found["limit"]


def test_a_picture(whole: Path) -> None:
    assert (whole / "run.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_in_the_report_is_the_one_that_was_run(whole: Path) -> None:
    reader = Reader((whole / "run.html").read_text())
    [command] = re.findall(r"tidegate capacity [^\n]*", reader.visible)
    assert "--max-rate 2000/s" in command
    assert not {"--yes", "--log", "--json", "--png"} & set(command.split())


def test_a_run_that_is_whole_is_only_judged_again(whole: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    log.write_bytes((whole / "run.jsonl").read_bytes())
    arguments = [TARGET, *SHORT, "--yes", "--max-rate", "2000/s", "--resume", str(log)]
    baseline = ["--ci", str(whole / "run.json")]
    code = run(*arguments, *baseline, "--json", str(tmp_path / "again.json"))
    again, before = figures(tmp_path, "again.json"), figures(whole)
    assert again["fell"] is False
    assert "Capacity is as it was" in again["verdict"]
    assert code == int((whole / "code").read_text())
    assert again["steps"] == before["steps"]
    assert log.read_bytes() == (whole / "run.jsonl").read_bytes()

    # A baseline that was twice as good.
    better = dict(before)
    better["capacity"] = {
        "per_min": 2 * before["capacity"]["interval"][1] + 2,
        "interval": [2 * before["capacity"]["interval"][1] + 1, 2 * before["capacity"]["interval"][1] + 3],
    }
    (tmp_path / "better.json").write_text(json.dumps(better))
    code = run(*arguments, "--ci", str(tmp_path / "better.json"), "--json", str(tmp_path / "fell.json"))
    assert code == 1
    assert figures(tmp_path, "fell.json")["verdict"].startswith("Capacity fell: ")


def test_a_run_of_something_else_is_not_gone_on_with(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(whole / "run.jsonl")
    assert run(TARGET, *SHORT, "--yes", "--resume", log, "--seed", "2") == 2
    assert "of another run" in capsys.readouterr().err.replace("\n", " ")
    assert run(TARGET, *SHORT, "--yes", "--log", log) == 2
    assert "is there already" in capsys.readouterr().err


@needs_proc
def test_ctrl_c_leaves_a_report_and_the_run_can_be_gone_on_with(tmp_path: Path) -> None:
    log, out, page = (tmp_path / name for name in ("run.jsonl", "run.json", "run.html"))
    options = [TARGET, *SHORT, "--yes", "--max-rate", "500/s", "--no-proof"]
    command = [*INTERRUPTIBLE, *options, f"--log={log}", f"--json={out}", f"--html={page}"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=HERE, text=True, **pipes) as running:
        try:
            deadline = time.monotonic() + 60
            while not (log.exists() and log.read_text().count("\n") >= 3):
                assert running.poll() is None, running.communicate()
                assert time.monotonic() < deadline
                time.sleep(0.02)
            children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130, said
    found = json.loads(out.read_text())
    assert found["interrupted"] is True
    assert found["verdict"].startswith("Interrupted: ")
    assert found["limit"] is None
    assert len(found["steps"]) == log.read_text().count("\n") - 1 >= 2
    assert found["verdict"] in Reader(page.read_text()).visible
    for child in children:
        assert not Path(f"/proc/{child}").exists()

    assert run(*options, f"--resume={log}", f"--json={out}") in (0, 1)
    again = json.loads(out.read_text())
    assert again["interrupted"] is False
    assert again["steps"][: len(found["steps"])] == found["steps"]
    assert len(again["steps"]) > len(found["steps"])


# --- bad targets, to the end -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("served_functions:wrong", "The first request failed: LookupError: no such order."),
        ("served_functions:never", "The first request, alone, had no answer within 2.00 s."),
        ("served_functions:nothing", "about as long as this generator takes to send one"),
        ("served_functions:ends_the_process", "The target's process ended"),
        ("served_functions:gone", "has no function gone"),
        ("http://127.0.0.1:PORT/", "connection refused. Nobody listens there"),
    ],
)
def test_what_was_seen_and_what_to_do(
    target: str, says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"
    target = target.replace("PORT", str(free_port()))
    assert run(target, *SHORT, "--yes", "--json", str(out)) == 1
    found = figures(tmp_path)
    assert found["verdict"].startswith("Cannot be tested: ")
    assert says in found["verdict"]
    assert found["limit"] is None
    assert found["holds"] is False
    assert found["verdict"] in capfd.readouterr().out


def test_wrong_credentials(service: tuple[str, list[str]], tmp_path: Path) -> None:
    app = FastAPI()

    @app.get("/")
    async def closed() -> None:
        from fastapi import HTTPException

        raise HTTPException(401)

    with serving(app) as place:
        assert run(f"http://{place}/", *SHORT, "--yes", "--json", str(tmp_path / "run.json")) == 1
    assert (
        "HTTP 401. The credentials are missing or wrong: give them with --header"
        in figures(tmp_path)["verdict"]
    )


def test_what_holds_the_password_is_not_written_down(tmp_path: Path) -> None:
    port = free_port()
    page, out, log = (tmp_path / name for name in ("run.html", "run.json", "run.jsonl"))
    files = ["--html", str(page), "--json", str(out), "--log", str(log)]
    secret = ["--header", "Authorization: Bearer swordfish"]
    assert run(f"http://me:swordfish@127.0.0.1:{port}/", *secret, *SHORT, "--yes", *files) == 1
    for file in (page, out, log):
        assert "swordfish" not in file.read_text(), file
    assert "--header 'Authorization: ...'" in Reader(page.read_text()).visible


def test_a_picture_that_cannot_be_drawn_takes_nothing_else_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tidegate.capacity.png.draw", full)
    out = tmp_path / "run.json"
    assert run("--simulate", "--json", str(out), "--png", str(tmp_path / "run.png")) == 2
    assert "No space left" in capsys.readouterr().err
    assert json.loads(out.read_text())["limit"]


# --- simulated ---------------------------------------------------------------------------------------


def test_a_simulation_has_figures_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "run.html"
    assert run("--simulate", "--seed", "7", "--json", "-", "--html", str(page)) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert 40 <= found["breaking_point"][0] < found["breaking_point"][1] <= 60
    assert 25 <= found["limit"] <= 33
    assert min(step["withdrawn"] for step in found["steps"]) == 0
    assert "Erlang B" in said.err
    reader = Reader(page.read_text())
    assert "tidegate capacity --seed 7 --gate db --simulate" in reader.visible
    assert "Simulated in virtual time" in reader.visible
    assert reader.islands["figures"] == found
