"""Times and rates in the units that people would take. Pure, and ASCII."""

from __future__ import annotations

from tidegate.report.words import NOTHING, number

MINUTE_S = 60.0
HOUR_S = 3600.0


def duration(seconds: float | None) -> str:
    """12.3 ms, 4.56 s, 7.89 min, 1.23 h."""
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{number(seconds * 1000)} ms"
    if seconds < 3 * MINUTE_S:
        return f"{number(seconds)} s"
    if seconds < 3 * HOUR_S:
        return f"{number(seconds / MINUTE_S)} min"
    return f"{number(seconds / HOUR_S)} h"


def moment(seconds: float) -> str:
    """A moment of a run, from its start: minute 12, second 3.4."""
    if seconds < 3 * MINUTE_S:
        return f"second {seconds:g}"
    return f"minute {seconds / MINUTE_S:g}"


def axis(length_s: float) -> tuple[str, float]:
    """The unit for the moments of a run: its name and its seconds."""
    return ("min", MINUTE_S) if length_s > 3 * MINUTE_S else ("s", 1.0)


def rate_unit(count: int, length_s: float) -> tuple[str, float]:
    """The unit for rates of about `count` in `length_s`: what follows a number, and its seconds."""
    return ("a second", 1.0) if count >= 10 * length_s else ("a minute", MINUTE_S)


def rate(count: int, length_s: float, what: str) -> str:
    """`count` events in `length_s` seconds, as a rate: 12.3 good answers a minute."""
    name, unit_s = rate_unit(count, length_s)
    return f"{number(count * unit_s / length_s)} {what} {name}"
