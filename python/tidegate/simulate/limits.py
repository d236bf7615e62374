"""The limit of a simulated gate, and how it came to be what it is. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.report.table import Group, Table
from tidegate.simulate.report import Report
from tidegate.simulate.units import axis, moment

_SHOWN = 6
"""Moves that a terminal shows; a page and the figures have all."""


def behind(report: Report) -> str:
    """Behind which gate it ran, for a sentence."""
    gate = report["gate"]
    if gate is None:
        return "without a gate"
    controller = _controller(report)
    if controller is None:
        return f"behind a gate of {gate['limit']}"
    return (
        f"behind a gate of {controller['prior']}, which {controller['kind']} brought to {gate['limit']} "
        f"({controller['min']} to {controller['max']})"
    )


def parameter(report: Report) -> str:
    """The gate, for a list of parameters."""
    gate = report["gate"]
    if gate is None:
        return "none"
    controller = _controller(report)
    if controller is None:
        return f"limit {gate['limit']}"
    return (
        f"limit {gate['limit']}, found by {controller['kind']} from {controller['prior']} on, "
        f"between {controller['min']} and {controller['max']}"
    )


def path(report: Report) -> str | None:
    """The last moves of the limit, as a sentence; None where it stayed."""
    changes = _changes(report)
    if not changes:
        return None
    earlier = "... " if len(changes) > _SHOWN else ""
    moves = ", ".join(
        f"{change['to']} at {moment(round(change['at_s'], 1))}{_because(change)}"
        for change in changes[-_SHOWN:]
    )
    return f"Its limit: {earlier}{moves}."


def table(report: Report) -> Table | None:
    """Every move that the gate remembers; None where there is none."""
    changes = _changes(report)
    if not changes:
        return None
    return Table(
        caption="The limit's path",
        headings=("when", "from", "to", "cause"),
        groups=[Group([list(_cells(change, report["virtual_s"])) for change in changes])],
        note="The last 64 changes. A controller's experiments, a tenth up or down and back in a moment, are not "
        "among them: the chart of what is in flight shows some.",
    )


def _cells(change: dict[str, Any], length_s: float) -> Iterator[str]:
    unit, unit_s = axis(length_s)
    yield f"{change['at_s'] / unit_s:.3g} {unit}"
    yield str(change["from"])
    yield str(change["to"])
    yield change["cause"] or "none"


def _because(change: dict[str, Any]) -> str:
    return f" ({change['cause']})" if change["cause"] else ""


def _changes(report: Report) -> list[dict[str, Any]]:
    gate = report["gate"]
    return [] if gate is None else gate["limit_changes"]


def _controller(report: Report) -> dict[str, Any] | None:
    return (report["scenario"].get("gate") or {}).get("controller")
