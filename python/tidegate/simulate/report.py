"""What a run came to, as the native half writes it in JSON."""

from __future__ import annotations

from typing import Any, TypedDict


class Tally(TypedDict):
    """Attempts, by what became of them."""

    offered: int
    first_attempts: int
    retries: int
    admitted: int
    would_shed: int
    shed: int
    shed_by_reason: dict[str, int]
    good: int
    late: int
    cancelled: int
    wasted: int
    error_rate: float | None
    shed_share: float | None


class Latency(TypedDict):
    """For how long things took, in seconds; None where there were none."""

    count: int
    mean_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    max_s: float | None


class Latencies(TypedDict):
    """Of good answers, and of all that were let in."""

    good: Latency
    admitted: Latency


class InFlight(TypedDict):
    """The weight inside."""

    mean: float
    peak: int
    end: int


class PriorityTally(Tally):
    """One priority in an interval."""

    priority: str


class PriorityReport(PriorityTally):
    """One priority in the whole run."""

    latency: Latency


class _Point(Tally):
    start_s: float
    length_s: float
    latency: Latency
    in_flight: InFlight
    awaited: int
    limit: int | None


class Point(_Point, total=False):
    """An interval of the series."""

    by_priority: list[PriorityTally]
    """Only where several came."""


class Report(TypedDict):
    """A whole run. Nothing in it depends on the machine or on how fast it was."""

    scenario: dict[str, Any]
    seed: int
    events: int
    virtual_s: float
    totals: Tally
    by_priority: list[PriorityReport]
    latency: Latencies
    in_flight: InFlight
    gate: dict[str, Any] | None
    series: list[Point]
