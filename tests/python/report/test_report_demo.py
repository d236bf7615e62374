"""The demo's page: `tidegate demo --html`."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from reportkit import Reader, report, row
from tidegate.cli import demo as command
from tidegate.cli import main
from tidegate.demo import html, runner
from tidegate.demo.report import Active, Auto, Essential, Move, Report
from tidegate.demo.verdict import as_json, judge
from tidegate.report.origin import Origin, command_line
from tidegate.report.page import Page, Tone, render

ORIGIN = Origin("tidegate demo --seed 7", [("Machine", "2 cores")])


def page(found: Report) -> Page:
    return html.as_page(found, judge(found), ORIGIN)


def charts(found: Report) -> dict[str, dict[str, object]]:
    """By title: the values of each line by name."""
    return {
        f"{section.title}: {chart.title}": {line.name: line.values for line in chart.lines}
        for section in page(found).sections
        for chart in section.charts
    }


def test_the_page_has_the_verdict_the_figures_and_where_they_come_from() -> None:
    found = report()
    reader = Reader(render(page(found)))
    assert judge(found).sentence in reader.visible
    assert reader.islands["figures"] == json.loads(json.dumps(as_json(found, judge(found))))
    for fact in ("SQLite 3.", "Seed7", "Users wait1 s", "gate36", "2 cores", ORIGIN.command):
        assert fact in reader.visible


@pytest.mark.parametrize(
    ("found", "tone", "head"),
    [
        (report(), Tone.HOLDS, "<strong>Holds:</strong>"),
        (report(rows=[row(2.0, "tidegate", 900, 0, 0)]), Tone.HOLDS, "<strong>Nothing to judge:</strong>"),
        (
            report(reference=replace(report().reference, goodput_ratio=0.5)),
            Tone.FAILS,
            "Does not hold:",
        ),
        (report(generator_lag_ms_p99=99.0), Tone.INVALID, "<strong>Invalid:</strong>"),
    ],
)
def test_the_verdict_comes_first(found: Report, tone: Tone, head: str) -> None:
    text = render(page(found))
    assert f'<p class="verdict {tone}">' in text
    assert text.index(head) < text.index("<main>")


def test_what_the_charts_show() -> None:
    assert charts(report()) == {
        "Under load: Good answers a second": {
            "ungated": [pytest.approx(0.3 * 108.5), pytest.approx(0.11 * 108.5)],
            "semaphore": [pytest.approx(0.3 * 108.5), pytest.approx(0.96 * 108.5)],
            "tidegate": [pytest.approx(0.3 * 108.5), pytest.approx(0.97 * 108.5)],
        },
        "Under load: Errors: late among admitted": {
            "ungated": [0.0, pytest.approx(100 * 5000 / 5110)],
            "semaphore": [0.0, 0.0],
            "tidegate": [0.0, 0.0],
        },
        "Under load: Essential requests answered": {
            "ungated": [100.0, 1.5],
            "semaphore": [100.0, 25.0],
            "tidegate": [100.0, 100.0],
        },
        # Nobody was shed at 0.5x, and without a gate never.
        "Under load: Time to be told no: p99 (p50 dashed)": {
            "semaphore": [None, 4.2],
            "tidegate": [None, 4.2],
            "semaphore p50": [None, 0.7],
            "tidegate p50": [None, 0.7],
        },
        "Under load: Time to a good answer, p50": {
            "ungated": [123.0, 700.5],
            "semaphore": [123.0, 123.0],
            "tidegate": [123.0, 123.0],
        },
        "Under load: Time to a good answer, p99": {
            "ungated": [456.0, 456.0],
            "semaphore": [456.0, 456.0],
            "tidegate": [456.0, 456.0],
        },
        "What the database can do: Answers a second": {"sqlite": [54.0, 108.5, 106.0]},
    }


def test_all_that_the_charts_show_is_in_the_tables() -> None:
    reader = Reader(render(page(report())))
    said = {
        value.removesuffix(" ms")
        for chart in reader.islands["charts"]
        for line in chart["lines"]
        for value in line["said"]
    }
    assert said - reader.cells == set()
    assert {"700", "1.5 %", "25.0 %", "97.8 %", "4.20", "105", "11.9"} < said
    assert {"4x", "0.96", "5"} < reader.cells
    assert "0.5x load" in reader.visible and "4x load" in reader.visible


def test_an_arm_looks_the_same_everywhere_whatever_stands_beside_it() -> None:
    more = [row(4.0, arm, 500, 10, 10) for arm in ("stock", "another", "auto")]
    inks: dict[str, set[int]] = {}
    for found in (
        report(),
        report(*more),
        report(rows=report().rows[:3]),
        report(rows=[*more, *report().rows]),
    ):
        for chart in page(found).sections[0].charts:
            for line in chart.lines:
                inks.setdefault(line.name.removesuffix(" p50"), set()).add(line.ink)
    assert all(len(of_arm) == 1 for of_arm in inks.values())
    assert len(set.union(*inks.values())) == len(inks) == 6


def test_an_arm_that_was_not_run_at_every_load_has_gaps() -> None:
    found = charts(report(row(4.0, "auto", 500, 0, 0)))
    assert found["Under load: Errors: late among admitted"]["auto"] == [None, 0.0]


def test_a_chart_that_would_be_empty_is_left_out() -> None:
    light = report(rows=report().rows[:3])
    assert not [title for title in charts(light) if "told no" in title]
    Reader(render(page(light)))


def test_how_many_backends_were_at_work_is_among_the_parameters() -> None:
    reader = Reader(render(page(report(database="postgres", active_backends=Active(33, 40)))))
    assert "33 in the median, 40 at most" in reader.visible
    assert "Backends at work" not in render(page(report()))


def test_a_database_whose_version_is_unknown_is_named() -> None:
    assert "requests to postgres, at" in render(page(report(database="postgres")))


# --- the command -------------------------------------------------------------------------------------


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> Report:
    """A run that is over at once."""
    found = report()
    monkeypatch.setattr(runner, "run", lambda options, progress: found)
    return found


def test_the_command_writes_the_page(ready: Report, tmp_path: Path) -> None:
    file, data = tmp_path / "page.html", tmp_path / "data.json"
    assert main(["demo", "--seed", "7", "--html", str(file), "--json", str(data)]) == 0
    reader = Reader(file.read_text(encoding="ascii"))
    assert reader.islands["figures"] == json.loads(data.read_text())
    assert "tidegate demo --database sqlite --loads 0.5,1,2,4 --seconds 6 --timeout 1" in reader.visible
    assert "--seed 7" in reader.visible
    assert str(tmp_path) not in reader.visible


def test_the_page_on_standard_output_stands_there_alone(
    ready: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--html", "-"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("<!doctype html>") and out.endswith("</html>\n")
    assert judge(ready).sentence in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--html", "/nowhere/file"], "cannot write /nowhere/file: "),
        (["--html", "{folder}"], "cannot write "),
        (["--html", "-", "--json", "-"], "--json and --html need different files"),
        (["--html", "{folder}/a", "--json", "{folder}/a"], "--json and --html need different files"),
    ],
)
def test_a_bad_file_is_told_before_the_run(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("it ran")

    monkeypatch.setattr(runner, "run", never)
    assert main(["demo", *(argument.format(folder=tmp_path) for argument in arguments)]) == 2
    assert said in capsys.readouterr().err


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.set_defaults(command="demo")
    command.configure(parser)
    return parser.parse_args(arguments)


def test_the_command_line_repeats_the_run() -> None:
    args = parse(
        "--loads", "0.25,3", "--seed", "-3", "--arrivals", "trace", "--trace", "a file", "--limit", "9"
    )
    program, name, *options = shlex.split(command_line(args))
    assert (program, name) == ("tidegate", "demo")
    assert parse(*options) == args
    assert command_line(args, "first.toml").startswith("tidegate demo first.toml --loads")


def test_the_command_line_keeps_secrets_and_leaves_out_where_results_went() -> None:
    line = command_line(parse("--dsn", "postgresql://me:secret@db/x", "--json", "a.json", "--html", "b.html"))
    assert "--dsn URL" in line
    assert "secret" not in line
    assert ".json" not in line and ".html" not in line


def test_the_command_line_of_switches() -> None:
    args = argparse.Namespace(command="simulate", dry_run=True, quiet=False, list=[1, 0.1], none=None)
    assert command_line(args) == "tidegate simulate --dry-run --list 1,0.1"


def test_the_origin_names_machine_and_versions() -> None:
    facts = dict(Origin.here("tidegate demo").facts)
    assert set(facts) == {"Machine", "Tidegate", "Python", "Made"}
    assert facts["Machine"].split()[1] == "cores,"
    assert facts["Made"].endswith(" UTC")


FOUND = Auto(
    load=4.0,
    pairs=5,
    goodput_ratio=0.97,
    essential=Essential(400, 399),
    searched=30.0,
    time_to_95=4.25,
    limit=27,
    moves=[Move(0.0, 16, "lost"), Move(3.5, 24, "raise"), Move(3.5004, 27, "raise"), Move(9.25, 25, "lower")],
)


def test_the_path_of_a_limit_that_finds_itself_has_steps() -> None:
    found = report(row(4.0, "auto", 950, 0, 1230), auto=[FOUND, replace(FOUND, load=2.0, moves=[])])
    (section,) = (section for section in page(found).sections if section.title == "A limit that finds itself")
    (chart,) = section.charts  # at 2x it did not move
    assert chart.title == "The limit at 4x load"
    (line,) = chart.lines
    assert list(zip(chart.x, line.values, strict=True)) == [
        (0.0, 16),
        (3.499, 16),
        (3.5, 24),
        (3.5004, 27),
        (9.249, 27),
        (9.25, 25),
    ]
    assert list(chart.x) == sorted(set(chart.x))
    assert [(mark.at, mark.name) for mark in chart.marks] == [(36, "given to the others")]
    cells = Reader(render(page(found))).cells
    assert {"4.2 s", "27", "0.97", "399 of 400"} <= cells
    assert "auto" in charts(found)["Under load: Good answers a second"]
    never = report(auto=[replace(FOUND, time_to_95=None)])
    assert "not in 30 s" in Reader(render(page(never))).cells


def test_without_that_arm_there_is_nothing_of_it() -> None:
    assert "finds itself" not in render(page(report()))
