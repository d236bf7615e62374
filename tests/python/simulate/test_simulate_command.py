"""`tidegate simulate` from outside: scenarios, oracles, what is refused, how it is interrupted."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tidegate.cli import main

SCENARIOS = Path(__file__).parents[3] / "examples" / "scenarios"
COMMAND = [sys.executable, "-m", "tidegate.cli", "simulate"]

SMALL = """
title = "Small & simple"
duration = "30s"
interval = "1s"
[gate]
limit = 4
[arrivals]
rate = "20/s"
[[arrivals.mix]]
priority = "critical"
share = 0.5
[[arrivals.mix]]
priority = "sheddable"
share = 0.5
[service]
kind = "servers"
time = "250ms"
[clients]
timeout = "1s"
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    file = tmp_path / "small.toml"
    file.write_text(SMALL, encoding="utf-8")
    return str(file)


def figures(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_figures_alone_on_standard_output(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", small, "--seed", "3", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err.splitlines()[-1] == found["verdict"]
    assert (found["seed"], found["virtual_s"], len(found["series"])) == (3, 30.0, 30)
    totals = found["totals"]
    assert totals["offered"] == sum(point["offered"] for point in found["series"]) > 400
    assert totals["offered"] == totals["admitted"] + totals["shed"]
    assert (found["gate"]["admitted"], found["gate"]["shed"]) == (totals["admitted"], totals["shed"])
    assert [one["priority"] for one in found["by_priority"]] == ["critical", "sheddable"]
    assert found["scenario"]["title"] == "Small & simple"
    for key in ("events", "latency", "in_flight"):
        assert found[key]


def test_a_seed_is_a_run(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    runs = []
    for seed in ("7", "7", "8"):
        assert main(["simulate", small, "--seed", seed, "--json", "-"]) == 0
        runs.append(figures(capsys))
    assert runs[0] == runs[1]
    assert runs[0]["totals"] != runs[2]["totals"]


def test_what_people_read(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["simulate", small]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Small & simple: 30.0 s behind a gate of 4, seed 1.")
    assert all(len(line) <= 80 for line in lines[:-1])
    assert any(line.split()[:1] == ["critical"] for line in lines)
    # Thirty intervals in at most 24 rows.
    assert sum(bool(re.match(r" *\d+ ", line)) for line in lines) == 15
    assert re.fullmatch(
        r"(Holds|Strained): .* in time; .* good answers a second and .* % of the attempts were shed "
        r"\(critical .* %, sheddable .* %\)\.",
        lines[-1],
    )


def test_the_page(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["simulate", small, "--html", str(page), "--json", "-"]) == 0
    found = figures(capsys)
    html = page.read_text(encoding="utf-8")
    assert html.isascii() and "Small &amp; simple" in html
    assert found["verdict"].partition(":")[0] in html
    assert f"tidegate simulate {small} --seed 1" in html
    # The one address is a mention, in the head of uPlot's own comment.
    assert set(re.findall(r"\w+://[\w./-]+", html)) == {"https://github.com/leeoniya/uPlot"}
    assert not re.search(r"<(link|img|iframe|script src)", html)


def test_standard_input(small: str) -> None:
    run = subprocess.run(
        [*COMMAND, "-", "--json", "-"], input=SMALL, capture_output=True, text=True, check=True
    )
    there = subprocess.run([*COMMAND, small, "--json", "-"], capture_output=True, text=True, check=True)
    assert run.stdout == there.stdout


@pytest.mark.parametrize("options", [[], ["-X", "utf8=0"]])
def test_standard_input_is_utf_8_whatever_the_locale(options: list[str]) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, *options, *COMMAND[1:], "-", "--json", "-"]

    def run(text: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, input=text, capture_output=True, env=environment, check=False)

    found = run(SMALL.replace("Small", "Sm\N{LATIN SMALL LETTER A WITH DIAERESIS}ll").encode())
    assert found.returncode == 0, found.stderr
    assert (
        json.loads(found.stdout)["scenario"]["title"]
        == "Sm\N{LATIN SMALL LETTER A WITH DIAERESIS}ll & simple"
    )
    found = run(b"title = '\xff'")
    assert found.returncode == 1
    assert found.stderr.startswith(
        b"tidegate simulate: standard input is not UTF-8: invalid start byte at byte 9"
    )


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.toml")), ids=lambda file: file.stem)
def test_the_examples_run(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["simulate", str(file), "--json", "-", "--html", str(page)]) == 0
    found = figures(capsys)
    assert found["totals"]["offered"] > 0 and found["series"]
    assert page.read_text(encoding="utf-8").count('class="chart"') >= 4


def test_the_article(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = {}
    for name in ("article-ramp", "article-gated"):
        assert main(["simulate", str(SCENARIOS / f"{name}.toml"), "--json", "-"]) == 0
        verdicts[name] = figures(capsys)["verdict"]
    assert re.match(r"Collapses: from minute 6\d to the end most", verdicts["article-ramp"]), verdicts
    assert verdicts["article-gated"].startswith("Holds: "), verdicts


# --- what is refused ---------------------------------------------------------------------------------


def test_every_fault_of_a_scenario_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(
        'duration = "1min"\n[gate]\nlimit = -1\n[arrivals]\nrate = "fast"\n[service]\nkind = "shared"\n'
        'lambda = "3/min"\nsigmas = 1\n',
        encoding="utf-8",
    )
    assert main(["simulate", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [re.match(rf"{re.escape(str(file))}, line (\d+): ", line).group(1) for line in lines] == [
        "3",
        "5",
        "9",
    ]  # type: ignore[union-attr]
    assert "gate.limit: limit must be a whole number from 0" in lines[0] and lines[0].endswith("got -1")


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(tmp_path / "none.toml")]) == 1
    assert "none.toml: No such file" in capsys.readouterr().err
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe9"')
    assert main(["simulate", str(tmp_path / "latin.toml")]) == 1
    assert "is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_what_comes_to_nothing_leaves_the_files_alone(
    option: str, small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, kept, new = tmp_path / "bad.toml", tmp_path / "kept", tmp_path / "new"
    bad.write_text("x = 1", encoding="utf-8")
    kept.write_text("of last time", encoding="utf-8")
    assert main(["simulate", str(bad), option, str(kept)]) == 1
    assert main(["simulate", str(bad), option, str(new)]) == 1
    assert kept.read_text(encoding="utf-8") == "of last time" and not new.exists()
    # A run that comes to something writes all of it, however much was there.
    kept.write_text("x" * 1_000_000, encoding="utf-8")
    for file in (kept, new):
        assert main(["simulate", small, option, str(file)]) == 0
    assert "xxx" not in kept.read_text(encoding="utf-8")
    assert 10_000 < kept.stat().st_size < 1_000_000
    assert abs(kept.stat().st_size - new.stat().st_size) < 100  # the page has its time


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_no_file_is_written_over_what_is_read(
    option: str, small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (small, str(tmp_path / "." / ".." / tmp_path.name / "small.toml")):
        assert main(["simulate", small, option, name]) == 2
        assert f"{option} {name} would overwrite what is read" in capsys.readouterr().err
        assert main(["simulate", "--like", small, option, name]) == 2
    assert Path(small).read_text(encoding="utf-8") == SMALL


@pytest.mark.parametrize("arguments", [["--json", "/dev/full"], ["--html", "/dev/full"], ["--json", "-"]])
def test_a_full_disk_is_said(arguments: list[str], small: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        run = subprocess.run(
            [*COMMAND, small, *arguments],
            stdout=full if arguments[-1] == "-" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert run.returncode == 2
    where = "standard output" if arguments[-1] == "-" else "/dev/full"
    assert (
        run.stderr.splitlines()[-1]
        == f"tidegate simulate: error: cannot write {where}: No space left on device"
    )


def test_who_has_read_enough_may_leave(small: str) -> None:
    command = shlex.join([*COMMAND, small, "--json", "-"])
    run = subprocess.run(
        ["bash", "-c", f"{command} | true; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (141, "")


ERLANG = ["--oracle", "erlang-b", "--limit", "5", "--offered", "3"]
DEGRADING = [
    "--oracle",
    "degrading",
    "--rate",
    "50",
    "--limit",
    "5",
    "--lambda",
    "3",
    "--sigma",
    "0",
    "--kappa",
    "0",
]
THRESHOLDS = ["--oracle", "thresholds", "--limit", "5", "--thresholds", "5,5,4,3", "--offered", "1,1,1,1"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ([], "name a scenario file, or --oracle, or --like"),
        (["x.toml", *ERLANG], "a scenario and --oracle do not go together"),
        (["x.toml", "--limit", "3"], "--limit goes with --oracle"),
        (["x.toml", "--service", "exponential"], "--service goes with --oracle"),
        (["x.toml", "--dry-run"], "--dry-run goes with --oracle"),
        (["x.toml", "--seed", "-1"], "the seed must be a whole number from 0 to 2^64 - 1, got '-1'"),
        (["x.toml", "--json", "a", "--html", "a"], "--json and --html need different files"),
        (["--oracle", "erlang-b", "--limit", "5"], "--oracle erlang-b needs --offered"),
        ([*ERLANG, "--sigma", "1"], "--sigma goes with --oracle degrading"),
        ([*ERLANG, "--offered", "1,2"], "--offered must be one number, got 1.0,2.0"),
        ([*ERLANG, "--offered", "-3"], "offered must be 0 or a number from 1e-6 to 1e6, got -3"),
        ([*ERLANG, "--offered", "nan"], "offered must be 0 or a number from 1e-6 to 1e6, got NaN"),
        ([*ERLANG, "--offered", "1_0"], "must be a number, got '1_0'"),
        ([*ERLANG, "--limit", "2.5"], "must be a whole number of at most 18 digits, got '2.5'"),
        ([*ERLANG, "--limit", "-1"], "limit must be a whole number from 0 to 1000000, got -1"),
        ([*ERLANG, "--service", "pareto"], "invalid choice: 'pareto'"),
        ([*ERLANG, "--bare"], "--bare goes with --dry-run"),
        ([*ERLANG, "--html", "x.html"], "--html goes with a scenario or --like"),
        (
            [*ERLANG, "--dry-run", "--bare", "--service", "lognormal"],
            "service must be exponential with bare entries",
        ),
        ([*DEGRADING, "--lambda", "0"], "lambda must be a number from 1e-6 to 1e6, got 0"),
        ([*DEGRADING, "--kappa", "inf"], "kappa must be a number from 0 to 1e6, got inf"),
        ([*DEGRADING, "--dry-run"], "--dry-run goes with --oracle erlang-b or thresholds"),
        ([*THRESHOLDS, "--thresholds", "5,5,4"], "--thresholds must be 4 numbers, one for each priority"),
        ([*THRESHOLDS, "--thresholds", "4,4,4,3"], "thresholds must be 5 (the limit) first and never rising"),
        ([*THRESHOLDS, "--thresholds", "5,5,3,4"], "thresholds must be 5 (the limit) first and never rising"),
        ([*THRESHOLDS, "--service", "lognormal"], "service must be exponential with thresholds"),
    ],
)
def test_usage_errors(arguments: list[str], fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert fault in err.splitlines()[-1]
    assert out == ""


def test_without_rich_it_says_what_to_install(
    small: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["simulate", small]) == 2
    assert 'pip install "tidegate[cli]"' in capsys.readouterr().err
    # An oracle needs no more than the package.
    assert main(["simulate", *ERLANG, "--json", "-"]) == 0


# --- oracles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [ERLANG, DEGRADING, THRESHOLDS, [*ERLANG, "--dry-run", "--bare"]])
def test_an_oracle_says_what_is_expected(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *arguments, "--seed", "4", "--json", "-"]) == 0
    found = figures(capsys)
    assert set(found) == {"expected", "simulated", "stderr", "n"}
    several = isinstance(found["expected"], list)
    assert several == ("thresholds" in arguments)
    columns = [found[key] if several else [found[key]] for key in ("expected", "simulated", "stderr")]
    for expected, simulated, error in zip(*columns, strict=True):
        assert abs(simulated - expected) <= 3 * error
        assert 0 < error <= 0.03 * expected
    assert len(columns[0]) == (4 if several else 1)
    assert found["n"] >= 190_000


def test_erlang_b_in_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--oracle", "erlang-b", "--limit", "9", "--offered", "0.01"]) == 0
    # However small they are.
    assert "shed, 2.72831e-24 expected" in capsys.readouterr().out
    assert main(["simulate", *ERLANG, "--service", "hyperexponential"]) == 0
    out = capsys.readouterr().out
    assert re.match(
        r"all: 0\.1\d+ shed, 0\.110054 expected: [+-]\d\.\d standard errors of 0\.00\d+\n\d+ arrivals", out
    )


@pytest.mark.parametrize(
    ("arguments", "shed"),
    [
        (["--oracle", "erlang-b", "--limit", "0", "--offered", "3"], 1.0),
        (["--oracle", "erlang-b", "--limit", "3", "--offered", "0"], 0.0),
        ([*THRESHOLDS, "--thresholds", "5,0,0,0", "--offered", "0,1,1,0"], [0.0, 1.0, 1.0, 1.0]),
    ],
)
def test_the_ends_are_exact(arguments: list[str], shed: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *arguments, "--json", "-"]) == 0
    found = figures(capsys)
    assert (found["expected"], found["simulated"]) == (shed, shed)


# --- interrupted -------------------------------------------------------------------------------------

ENDLESS = SMALL.replace('"30s"', '"10000h"').replace('"1s"', '"1h"', 1).replace("20/s", "10/s")


@pytest.mark.parametrize(
    ("arguments", "text", "how"),
    [
        (["-"], ENDLESS, signal.SIGINT),
        (["--oracle", "erlang-b", "--limit", "100000", "--offered", "100000"], "", signal.SIGTERM),
    ],
)
def test_a_long_run_can_be_interrupted(arguments: list[str], text: str, how: signal.Signals) -> None:
    command = ["simulate", *arguments]
    code = f"import sys; print(flush=True); from tidegate.cli import main; sys.exit(main({command!r}))"
    run = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdin is not None and run.stdout is not None and run.stderr is not None
    run.stdin.write(text)
    run.stdin.close()
    run.stdout.readline()
    # Until it computes, which is more than imports take.
    while _cpu_s(run.pid) < 0.6:
        assert run.poll() is None, run.stderr.read()
    run.send_signal(how)
    assert run.wait(timeout=30) == 130, run.stderr.read()
    assert run.stderr.read().endswith("tidegate: interrupted\n")
    run.stdout.close()
    run.stderr.close()


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except FileNotFoundError:
        pytest.skip("needs /proc to see how far it is")
    return (int(fields[11]) + int(fields[12])) / 100
