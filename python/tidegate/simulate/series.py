"""The series of a run, with as many rows as one can read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate.simulate.report import Point, PriorityTally


@dataclass(frozen=True, slots=True)
class Row:
    """One or more intervals that follow each other."""

    start_s: float
    length_s: float
    offered: int
    good: int
    late: int
    shed: int
    would_shed: int
    in_flight: float
    """Averaged over time."""
    limit: int | None
    """At the end."""
    p50_s: float | None
    p99_s: float | None
    """Of good answers. Of several intervals, that of the worst: quantiles cannot be added."""
    shed_by_priority: dict[str, float]
    """The share of each priority that came, where several do."""

    @property
    def error_rate(self) -> float | None:
        """Late ones among those let in that came to something."""
        return share(self.late, self.good + self.late)

    def per(self, count: int, unit_s: float) -> float:
        """`count` as a rate."""
        return count * unit_s / self.length_s


def rows(series: Sequence[Point], most: int) -> list[Row]:
    """The series in at most `most` rows, each of equally many intervals but perhaps the last."""
    each = max(1, -(-len(series) // most))
    return [_row(series[at : at + each]) for at in range(0, len(series), each)]


def share(part: int, whole: int) -> float | None:
    """A share; None of nothing."""
    return part / whole if whole else None


def _row(points: Sequence[Point]) -> Row:
    length_s = sum(point["length_s"] for point in points)
    return Row(
        start_s=points[0]["start_s"],
        length_s=length_s,
        offered=sum(point["offered"] for point in points),
        good=sum(point["good"] for point in points),
        late=sum(point["late"] for point in points),
        shed=sum(point["shed"] for point in points),
        would_shed=sum(point["would_shed"] for point in points),
        in_flight=sum(point["in_flight"]["mean"] * point["length_s"] for point in points) / length_s,
        limit=points[-1]["limit"],
        p50_s=_worst(point["latency"]["p50_s"] for point in points),
        p99_s=_worst(point["latency"]["p99_s"] for point in points),
        shed_by_priority=_shed_by_priority(points),
    )


def _worst(values: Iterator[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _shed_by_priority(points: Sequence[Point]) -> dict[str, float]:
    tallies: dict[str, list[PriorityTally]] = {}
    for point in points:
        for tally in point.get("by_priority", []):
            tallies.setdefault(tally["priority"], []).append(tally)
    shares = {
        priority: share(sum(tally["shed"] for tally in several), sum(tally["offered"] for tally in several))
        for priority, several in tallies.items()
    }
    return {priority: shed for priority, shed in shares.items() if shed is not None}
