"""From attempts to the figures that are printed and written. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tidegate.demo.capacity import Level
from tidegate.demo.users import Attempt, Outcome


@dataclass(frozen=True, slots=True)
class Essential:
    """Attempts by essential users."""

    offered: int
    good: int

    @property
    def success(self) -> float | None:
        """The share of them that were answered in time."""
        return self.good / self.offered if self.offered else None


@dataclass(frozen=True, slots=True)
class Row:
    """One arm at one load. Counts are attempts; good + late + shed = offered."""

    load: float
    arm: str
    offered: int
    good: int
    late: int
    shed: int
    error_rate: float | None
    """Late among the admitted."""
    goodput_ratio: float
    """Good answers a second against the database's best throughput."""
    shed_ms_p50: float | None
    shed_ms_p99: float | None
    p50_ms: float | None
    """Of good answers."""
    p99_ms: float | None
    essential: Essential

    @property
    def admitted(self) -> int:
        """What was let in."""
        return self.good + self.late


@dataclass(frozen=True, slots=True)
class Reference:
    """Tidegate at the highest load against reference windows between its own: medians over pairs."""

    load: float
    pairs: int
    goodput_ratio: float


@dataclass(frozen=True, slots=True)
class Move:
    """A change of a limit that finds itself, but for those of experiments."""

    at: float
    """In seconds, since its first user came."""
    limit: int
    """From then on."""
    cause: str


@dataclass(frozen=True, slots=True)
class Auto:
    """The arm without a given limit at one load."""

    load: float
    pairs: int
    goodput_ratio: float
    """Its good answers against those of the given limit, in turns: the median of the pairs."""
    essential: Essential
    """Of all its windows but the first, in which it looks for the limit."""
    searched: float
    """How long that one was."""
    time_to_95: float | None
    """After so many seconds of it good answers came as often as 0.95 of the given limit's; None: never."""
    limit: int
    """In the end."""
    moves: Sequence[Move]
    """The last of them, at most 64."""


@dataclass(frozen=True, slots=True)
class Active:
    """How many of the database's backends were at work at once, over many looks."""

    p50: int
    max: int

    @classmethod
    def among(cls, looks: Sequence[int]) -> Self | None:
        """None where nobody looked."""
        return cls(round(statistics.median(looks)), max(looks)) if looks else None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a run found out, but for the judgement."""

    database: str
    seed: int
    timeout: float
    seconds: float
    """How long users came, for each load and arm."""
    arrivals: str
    """By the shipped trace ("trace"), by another one ("file"), or by chance ("poisson")."""
    limit: int
    workers: int
    best_per_s: float
    service_ms: float
    curve: Sequence[Level]
    generator_lag_ms_p99: float
    reference: Reference
    rows: Sequence[Row]
    active_backends: Active | None = None
    """Ungated, at the highest load. None where the database does not say."""
    auto: Sequence[Auto] = ()
    """At each load that asks for more than the database can do; empty unless the arm was asked for."""

    def row(self, load: float, arm: str) -> Row:
        """The figures of one arm at one load."""
        return next(row for row in self.rows if (row.load, row.arm) == (load, arm))


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def good_per_s(attempts: Sequence[Attempt], window: float) -> float:
    """Good answers a second, until the window's end or the last good answer, whichever is later.

    Requests of a window's last moments are answered after its end. To count these answers and not their time
    would flatter whoever has most inside.
    """
    ends = [attempt.ended for attempt in attempts if attempt.outcome is Outcome.GOOD]
    return len(ends) / max(window, *ends) if ends else 0.0


def time_to(attempts: Sequence[Attempt], per_s: float, span: float) -> float | None:
    """When good answers had first come `per_s` a second for `span` seconds, or as many in less."""
    enough = max(1, math.ceil(per_s * span))
    ends = sorted(attempt.ended for attempt in attempts if attempt.outcome is Outcome.GOOD)
    for first, last in zip(ends, ends[enough - 1 :], strict=False):
        if last - first <= span:
            return last
    return None


def summarise(load: float, arm: str, attempts: Sequence[Attempt], window: float, best: float) -> Row:
    """The figures of one cell."""
    milliseconds: dict[Outcome, list[float]] = {outcome: [] for outcome in Outcome}
    for attempt in attempts:
        milliseconds[attempt.outcome].append(attempt.latency * 1000)
    good, late, shed = (milliseconds[outcome] for outcome in (Outcome.GOOD, Outcome.LATE, Outcome.SHED))
    essential = [attempt for attempt in attempts if attempt.essential]
    admitted = len(good) + len(late)
    return Row(
        load=load,
        arm=arm,
        offered=len(attempts),
        good=len(good),
        late=len(late),
        shed=len(shed),
        error_rate=len(late) / admitted if admitted else None,
        goodput_ratio=good_per_s(attempts, window) / best,
        shed_ms_p50=percentile(shed, 0.5),
        shed_ms_p99=percentile(shed, 0.99),
        p50_ms=percentile(good, 0.5),
        p99_ms=percentile(good, 0.99),
        essential=Essential(
            offered=len(essential),
            good=sum(attempt.outcome is Outcome.GOOD for attempt in essential),
        ),
    )
