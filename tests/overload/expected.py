"""The table that every language has to arrive at, from the workload alone: nothing of Tidegate is used here.

The rules are worked out another way than the library does it: priorities by the beginning of the path, the
room by adding up what is inside, and the rate by a bucket of tokens, in fractions.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

LIMIT = 8
ROOM = {"critical_plus": 8, "critical": 8, "sheddable_plus": 6, "sheddable": 4}  # 0.75 of 8; 4 of 8 kept free
PER_MS = Fraction(32, 1000)
BURST = 4


def priority(path: str) -> str:
    """As the workload's rules have it."""
    for start, name in (
        ("/pay/", "critical_plus"),
        ("/reports/", "sheddable_plus"),
        ("/crawl/", "sheddable"),
    ):
        if path.startswith(start):
            return name
    return "critical"


class Room:
    """A gate, as its documentation has it."""

    def __init__(self) -> None:
        self.inside: dict[int, int] = {}  # the weight of each request
        self.closed = False
        self.tokens, self.since = Fraction(BURST), 0

    def refusal(self, at_ms: int, level: str, weight: int) -> str | None:
        """Why a request is not let in."""
        if self.closed:
            return "closed"
        inside = sum(self.inside.values())
        if inside + weight > LIMIT:
            return "limit"
        if inside + weight > ROOM[level]:
            return "priority"
        self.tokens = min(Fraction(BURST), self.tokens + (at_ms - self.since) * PER_MS)
        self.since = at_ms
        return "rate" if self.tokens < weight else None


def of_load(load: dict[str, Any]) -> dict[str, Any]:
    """One row of the table."""
    room = Room()
    offered, admitted, released = Counter[str](), Counter[str](), Counter[str]()
    shed: dict[str, Counter[str]] = {}
    high_water = 0
    for event in load["events"]:
        if "close" in event:
            room.closed = True
        elif "leave" in event:
            if room.inside.pop(event["leave"], None) is not None:
                released[event["outcome"]] += 1
        else:
            level, weight = priority(event["path"]), event["weight"]
            offered[level] += 1
            reason = room.refusal(event["at_ms"], level, weight)
            if reason is None:
                room.tokens -= weight
                room.inside[event["arrive"]] = weight
                admitted[level] += 1
                high_water = max(high_water, sum(room.inside.values()))
            else:
                shed.setdefault(level, Counter())[reason] += 1
    assert not room.inside
    return {
        "load": load["load"],
        "offered": dict(offered),
        "admitted": dict(admitted),
        "shed": {level: dict(reasons) for level, reasons in shed.items()},
        "released": dict(released),
        "high_water": high_water,
        "in_flight": 0,
    }


def table(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows."""
    return [of_load(load) for load in workload["loads"]]
