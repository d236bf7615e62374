"""Which figures are compared, and when one counts as different. Pure.

The bounds are the same in every cell: what a reader would not call the same story.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate.demo.report import Row
from tidegate.report import words


@dataclass(frozen=True, slots=True)
class Figure:
    """A predicted figure: the mean over runs with different seeds, and how much these differ."""

    mean: float
    sd: float


@dataclass(frozen=True, slots=True)
class Kind:
    """A figure that is measured and predicted."""

    key: str
    """In JSON."""
    said: str
    """With `{}` for the value."""
    of: Callable[[Row], float | None]
    write: Callable[[float], str]
    apart: float
    """How far apart two may be, or how many times as large one may be as the other."""
    as_ratio: bool = False
    more_is_better: bool = False

    def over(self, runs: Sequence[Row]) -> Figure | None:
        """What runs come to; None where no run has it."""
        found = [value for value in map(self.of, runs) if value is not None]
        return Figure(statistics.fmean(found), statistics.pstdev(found)) if found else None

    def differs(self, measured: float, predicted: Figure) -> bool:
        """Whether they are apart, by more than chance lets runs differ."""
        gap = abs(measured - predicted.mean)
        bound = (self.apart - 1) * min(measured, predicted.mean) if self.as_ratio else self.apart
        return gap > bound and gap > 2 * predicted.sd

    def say(self, value: float) -> str:
        """The value, in words."""
        return self.said.format(self.write(value))


def mean(runs: Sequence[object], count: str) -> float:
    """The mean of a count over runs."""
    return statistics.fmean(getattr(run, count) for run in runs)


def _percent(share: float) -> str:
    return words.percent(share * 100)


def _ratio(value: float) -> str:
    return f"{value:.2f}"


def _milliseconds(value: float) -> str:
    return f"{words.number(value)} ms"


ERRORS = Kind("error_rate", "{} errors", lambda row: row.error_rate, _percent, 0.03)
GOODPUT = Kind(
    "goodput_ratio",
    "good answers at {} of the best",
    lambda row: row.goodput_ratio,
    _ratio,
    0.05,
    more_is_better=True,
)
ESSENTIAL = Kind(
    "essential",
    "{} of the essential requests answered",
    lambda row: row.essential.success,
    _percent,
    0.05,
    more_is_better=True,
)
P50 = Kind(
    "p50_ms", "half of the good answers within {}", lambda row: row.p50_ms, _milliseconds, 1.25, as_ratio=True
)
P99 = Kind("p99_ms", "99 % of them within {}", lambda row: row.p99_ms, _milliseconds, 1.25, as_ratio=True)
KINDS: Sequence[Kind] = (ERRORS, GOODPUT, ESSENTIAL, P50, P99)

RULE = (
    "A figure counts as predicted within 3 points of errors, 0.05 of the best throughput, 5 points of "
    "essential success, a quarter of a latency, or two standard deviations of the runs."
)
