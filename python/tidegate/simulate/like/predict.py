"""What the simulator says of a cell of a demo, as the demo would have reported it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tidegate.demo.report import Essential, Row
from tidegate.simulate.like.measured import Demo
from tidegate.simulate.like.scenarios import Cell
from tidegate.simulate.report import Report
from tidegate.simulate.series import share

Simulate = Callable[[str, str, int], str]
"""From a scenario's text, its path and a seed to the JSON of its report."""


def predict(demo: Demo, cell: Cell, folder: Path, *, seed: int, runs: int, simulate: Simulate) -> list[Row]:
    """Run a cell's scenario with as many seeds.

    Args:
        demo: Whose cell it is.
        cell: Which.
        folder: Where its files go.
        seed: The first seed.
        runs: How many.
        simulate: The simulator.
    """
    path = cell.write(folder)
    return [
        as_row(demo, cell, json.loads(simulate(cell.scenario, str(path), (seed + run) % 2**64)))
        for run in range(runs)
    ]


def as_row(demo: Demo, cell: Cell, report: Report) -> Row:
    """A run, as the demo would have reported it. How long a refusal takes is not simulated."""
    totals = report["totals"]
    # As `tidegate.demo.report.good_per_s`: until the window's end or the last good answer.
    ends = [point["start_s"] + point["length_s"] for point in report["series"] if point["good"]]
    window = max(demo.seconds, *(cell.times[0] + end for end in ends[-1:]), 0.0)
    good = report["latency"]["good"]
    essential = [one for one in report["by_priority"] if one["priority"] == "critical"]
    return Row(
        load=cell.measured.load,
        arm=cell.measured.arm,
        offered=totals["offered"],
        good=totals["good"],
        late=totals["late"],
        shed=totals["shed"],
        error_rate=share(totals["late"], totals["good"] + totals["late"]),
        goodput_ratio=totals["good"] / window / demo.best_per_s,
        shed_ms_p50=None,
        shed_ms_p99=None,
        p50_ms=_milliseconds(good["p50_s"]),
        p99_ms=_milliseconds(good["p99_s"]),
        essential=Essential(
            offered=sum(one["offered"] for one in essential), good=sum(one["good"] for one in essential)
        ),
    )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000
