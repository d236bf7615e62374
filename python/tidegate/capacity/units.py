"""Durations and rates as they are written on a command line. Pure."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from tidegate.report.words import NOTHING, number

MINUTE_S = 60.0

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"(?a:([0-9]+(?:\.[0-9]+)?))\s*(.*)", re.DOTALL)


def seconds(text: str) -> float:
    """A duration: `1.5`, `200ms`, `90s`, `15min`, `4h`; a bare number is seconds.

    Raises:
        ValueError: It is none, or not above 0.
    """
    value, unit = _split(text, f"{text!r} is not a duration: write 90s, 15min or 200ms")
    if unit not in ("", *_SECONDS):
        raise ValueError(f"{text!r} is not a duration: its unit must be ms, s, min or h")
    return _positive(value * _SECONDS.get(unit, 1.0), text)


def per_second(text: str) -> float:
    """A rate: `40`, `40/min`, `2.5/s`; a bare number is a minute's. 0 is nothing at all.

    Raises:
        ValueError: It is none.
    """
    value, unit = _split(text, f"{text!r} is not a rate: write 40/min or 2.5/s")
    unit = unit.removeprefix("/").strip()
    if unit not in ("", "s", "min", "h"):
        raise ValueError(f"{text!r} is not a rate: its unit must be /s, /min or /h")
    return value / _SECONDS[unit or "min"]


def rates(text: str) -> tuple[float, ...]:
    """A list of rates that grow, all in the unit of the last: `0,10,20,40,80,150/min`.

    Raises:
        ValueError: One of them is no rate, or they do not grow.
    """
    *values, last = (part.strip() for part in text.split(","))
    unit = last[last.index("/") :] if "/" in last else ""
    found = tuple(per_second(value if "/" in value else value + unit) for value in (*values, last))
    for lower, higher in pairwise(found):
        if higher <= lower:
            raise ValueError(f"the rates must grow, got {text!r}")
    if found[-1] <= 0:
        raise ValueError(f"one rate at least must be above 0, got {text!r}")
    return found


def rate(per_s: float | None) -> str:
    """A rate as people take it: 45.2/min, 12.3/s."""
    if per_s is None:
        return NOTHING
    return f"{number(per_s)}/s" if per_s >= 10 else f"{number(per_s * MINUTE_S)}/min"


def _split(text: str, complaint: str) -> tuple[float, str]:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError(complaint)
    value = float(found[1])
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is too large")
    return value, found[2].strip()


def _positive(value: float, text: str) -> float:
    if value <= 0:
        raise ValueError(f"{text!r} must be above 0")
    return value
