"""What the simulator says of every cell of a demo."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.simulate.like.scenarios import Cell

Simulate = Callable[[str, str, int], str]
"""From a scenario's text, its path and a seed to the JSON of its report."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A predicted figure: the mean over runs with different seeds, and how much these differ."""

    mean: float
    sd: float

    @classmethod
    def over(cls, values: Sequence[float | None]) -> Figure | None:
        """None where no run has it."""
        found = [value for value in values if value is not None]
        return cls(statistics.fmean(found), statistics.pstdev(found)) if found else None


@dataclass(frozen=True, slots=True)
class Prediction:
    """The figures of `tidegate.demo.report.Row` that a service model has something to say about."""

    offered: float
    good: float
    late: float
    shed: float
    error_rate: Figure | None
    goodput_ratio: Figure
    p50_ms: Figure | None
    p99_ms: Figure | None
    essential: Figure | None
    """The share of them that were answered in time."""


def predict(
    cell: Cell, folder: Path, *, best_per_s: float, seconds: float, seed: int, runs: int, simulate: Simulate
) -> Prediction:
    """Run a cell's scenario with as many seeds.

    Args:
        cell: Which.
        folder: Where its files go.
        best_per_s: The database's best throughput, as measured.
        seconds: How long users come.
        seed: The first seed.
        runs: How many.
        simulate: The simulator.
    """
    path = cell.write(folder)
    reports = [json.loads(simulate(cell.scenario, str(path), seed + run)) for run in range(runs)]
    totals = [report["totals"] for report in reports]
    goodput = Figure.over([_good_per_s(report, cell.times[0], seconds) / best_per_s for report in reports])
    assert goodput is not None
    return Prediction(
        offered=statistics.fmean(total["offered"] for total in totals),
        good=statistics.fmean(total["good"] for total in totals),
        late=statistics.fmean(total["late"] for total in totals),
        shed=statistics.fmean(total["shed"] for total in totals),
        error_rate=Figure.over([_share(total["late"], total["good"] + total["late"]) for total in totals]),
        goodput_ratio=goodput,
        p50_ms=Figure.over([_good_ms(report, "p50_s") for report in reports]),
        p99_ms=Figure.over([_good_ms(report, "p99_s") for report in reports]),
        essential=Figure.over([_essential(report) for report in reports]),
    )


def _good_per_s(report: Mapping[str, Any], first: float, seconds: float) -> float:
    """As `tidegate.demo.report.good_per_s`: until the window's end or the last good answer."""
    ends = [first + point["start_s"] + point["length_s"] for point in report["series"] if point["good"]]
    return report["totals"]["good"] / max([seconds, *ends])


def _good_ms(report: Mapping[str, Any], name: str) -> float | None:
    value: float | None = report["latency"]["good"][name]
    return None if value is None else value * 1000


def _essential(report: Mapping[str, Any]) -> float | None:
    for priority in report["by_priority"]:
        if priority["priority"] == "critical":
            return _share(priority["good"], priority["offered"])
    return None


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
