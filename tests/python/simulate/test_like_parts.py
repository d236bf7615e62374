"""The parts of a comparison: scenarios, runs as the demo would report them, differences and causes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from likekit import changed
from tidegate import _native
from tidegate.demo import arrivals
from tidegate.simulate.like.causes import cause_of
from tidegate.simulate.like.compare import compare
from tidegate.simulate.like.figures import ERRORS, GOODPUT, P50, Figure, Kind
from tidegate.simulate.like.measured import read
from tidegate.simulate.like.model import Model
from tidegate.simulate.like.predict import as_row
from tidegate.simulate.like.scenarios import Cell, cells

DEMO = read(changed())
MODEL = Model(50.0, 0.125, 0.0625, 2)


def cell(load: float, arm: str, **setting: Any) -> Cell:
    row = next(row for row in DEMO.rows if row.load == load)
    return next(cells(replace(DEMO, rows=[replace(row, arm=arm)], **setting), MODEL))


def test_a_scenario_has_the_demos_settings() -> None:
    found = cell(2.0, "tidegate", limit=17, workers=3, timeout=0.75, seconds=2.0)
    for line in (
        *("limit = 17", 'timeout = "0.75s"', 'duration = "2.75s"', 'trace = "2x-users.csv"'),
        *('lambda = "50/s"', "sigma = 0.125", "kappa = 0.0625", "processors = 2", "servers = 3"),
        *(
            "most = 2",
            'after = "0.375s"',
            "jitter = 0.8",
            "backoff = 1.0",
            'until = "2s"',
            'on = ["timeout"]',
            'on_timeout = "abandon"',
        ),
    ):
        assert line in {line.partition("  #")[0] for line in found.scenario.splitlines()}, line


def test_only_the_gate_keeps_room_for_essential_requests() -> None:
    assert "[gate]" not in cell(2.0, "ungated").scenario
    assert "[gate]" not in cell(2.0, "stock").scenario
    assert "thresholds" in cell(2.0, "semaphore").scenario
    assert "thresholds" not in cell(2.0, "tidegate").scenario


@pytest.mark.parametrize(
    ("arm", "servers"), [("ungated", 40), ("stock", 15), ("semaphore", 2), ("tidegate", 2)]
)
def test_as_many_are_served_at_a_time_as_behind_the_demos_doors(arm: str, servers: int) -> None:
    found = cell(1.0, arm, workers=2)
    assert found.servers == servers
    assert f"\nservers = {servers}\n" in found.scenario


def test_users_come_when_the_demos_came() -> None:
    expected = arrivals.users(2.0, DEMO.best_per_s, 3.0, seed=1, trace=arrivals.read_trace())
    assert cell(2.0, "ungated").times == tuple(user.at for user in expected)
    by_chance = cell(2.0, "ungated", arrivals="poisson")
    expected = arrivals.users(2.0, DEMO.best_per_s, 3.0, seed=1)
    assert by_chance.times == tuple(user.at for user in expected)


def test_a_run_begins_with_the_first_user(tmp_path: Path) -> None:
    """And ends with the window: nobody comes again later, and nobody is still waited for."""
    found = cell(1.0, "ungated", arrivals="poisson", best_per_s=2.0, seconds=10.0, seed=5)
    first = found.times[0]
    assert first > 0.1
    assert f'until = "{10.0 - first:.9f}'.rstrip("0") in found.scenario
    written = found.write(tmp_path).with_name(found.trace).read_text("utf-8").splitlines()
    assert [float(line) for line in written[1:]] == pytest.approx(found.times, abs=1e-6)


def test_nobody_comes_to_a_demo_that_is_too_small() -> None:
    rows = [replace(DEMO.rows[0], load=1e-5)]
    assert list(cells(replace(DEMO, rows=rows, arrivals="poisson"), MODEL)) == []


def report(*good_in_intervals: int, late: int = 0) -> Any:
    """Intervals of one second."""
    good = sum(good_in_intervals)
    tally = {"offered": good + late, "good": good, "late": late, "shed": 0}
    return {
        "totals": tally,
        "series": [
            {"start_s": float(at), "length_s": 1.0, "good": count}
            for at, count in enumerate(good_in_intervals)
        ],
        "latency": {"good": {"p50_s": 0.25 if good else None, "p99_s": 0.5 if good else None}},
        "by_priority": [
            {"priority": "critical", "offered": 4, "good": 3},
            {"priority": "sheddable", "offered": 9, "good": 9},
        ],
    }


def test_a_run_is_reported_as_the_demo_would() -> None:
    demo = replace(DEMO, best_per_s=10.0, seconds=3.0)
    found = cell(1.0, "ungated")
    row = as_row(demo, found, report(10, 10, 10, 0, late=10))
    assert (row.offered, row.good, row.late, row.error_rate) == (40, 30, 10, 0.25)
    assert (row.p50_ms, row.p99_ms, row.essential.success) == (250.0, 500.0, 0.75)
    assert row.goodput_ratio == pytest.approx(1.0)
    # An answer after the window's end: it counts, and so does the time until it.
    assert as_row(demo, found, report(10, 10, 5, 5)).goodput_ratio == pytest.approx(0.75)
    # A run that begins with a late first user.
    late = replace(found, times=(1.0,))
    assert as_row(demo, late, report(10, 10, 10)).goodput_ratio == pytest.approx(0.75)
    nothing = as_row(demo, found, report(0, 0, 0))
    assert (nothing.error_rate, nothing.goodput_ratio, nothing.p50_ms) == (None, 0.0, None)


@pytest.mark.parametrize(
    ("kind", "measured", "mean", "sd", "differs"),
    [
        (ERRORS, 0.97, 0.945, 0.0, False),
        (ERRORS, 0.97, 0.935, 0.0, True),
        (ERRORS, 0.97, 0.935, 0.02, False),
        (GOODPUT, 0.90, 0.86, 0.0, False),
        (GOODPUT, 0.80, 0.86, 0.0, True),
        (P50, 100.0, 124.0, 0.0, False),
        (P50, 124.0, 100.0, 0.0, False),
        (P50, 100.0, 126.0, 0.0, True),
        (P50, 126.0, 100.0, 0.0, True),
    ],
)
def test_what_counts_as_a_difference(
    kind: Kind, measured: float, mean: float, sd: float, differs: bool
) -> None:
    assert kind.differs(measured, Figure(mean, sd)) is differs


@pytest.mark.parametrize(
    ("load", "arm", "kind", "worse", "cause"),
    [
        (0.5, "tidegate", P50, True, "around_it"),
        (0.5, "tidegate", P50, False, "unknown"),
        (0.5, "ungated", ERRORS, True, "unknown"),
        (1.0, "semaphore", GOODPUT, True, "edge"),
        (4.0, "ungated", ERRORS, False, "many_at_work"),
        (4.0, "tidegate", GOODPUT, True, "refusing"),
        (4.0, "tidegate", GOODPUT, False, "unknown"),
    ],
)
def test_what_may_be_why(load: float, arm: str, kind: Kind, worse: bool, cause: str) -> None:
    found = cause_of(DEMO, cell(load, arm), kind, worse)
    assert found.key == cause
    assert found.say(DEMO, MODEL).endswith(".")


def test_a_machine_that_was_faster_under_load_is_noted(tmp_path: Path) -> None:
    def notes(ratio: float) -> str:
        demo = replace(DEMO, rows=[replace(DEMO.rows[0], goodput_ratio=ratio)])
        return " ".join(compare(demo, folder=tmp_path, seed=1, simulate=_native.simulate).notes)

    assert "ungated at 0.5x reached 1.25 of the best that the database was measured to do" in notes(1.25)
    assert "reached" not in notes(1.05)
