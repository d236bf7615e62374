"""What a run says, in one sentence. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.report.page import Tone
from tidegate.report.words import number, percent
from tidegate.simulate.report import Report
from tidegate.simulate.units import moment, rate

FEW = 0.01
"""The share of errors up to which accepted users do not notice."""

MOST = 0.5
"""The share of errors from which an interval counts as collapsed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence, and what kind of news it is."""

    tone: Tone
    sentence: str


def judge(report: Report) -> Verdict:
    """Judge a run by what those who were let in got."""
    totals = report["totals"]
    if totals["offered"] == 0:
        return Verdict(Tone.INVALID, "Nothing to judge: nobody came.")
    errors = totals["error_rate"]
    if errors is None:
        what = "everybody was turned away" if totals["shed"] == totals["offered"] else "nobody was answered"
        return Verdict(Tone.FAILS, f"Answers nobody: {what}.")
    late = f"{percent(errors * 100)} of those let in were not answered in time"
    if errors <= FEW:
        return Verdict(Tone.HOLDS, f"Holds: {late}; {_rest(report)}.")
    since = _collapsed_since(report)
    if since is None:
        return Verdict(Tone.FAILS, f"Strained: {late}; {_rest(report)}.")
    return Verdict(
        Tone.FAILS,
        f"Collapses: from {moment(since)} to the end most of those let in were not answered in time, "
        f"{percent(errors * 100)} over the whole run; {_rest(report)}.",
    )


def _collapsed_since(report: Report) -> float | None:
    """The moment from which most answers are late until the end."""
    since: float | None = None
    for point in report["series"]:
        errors = point["error_rate"]
        if errors is None:
            continue  # nobody was answered, and nobody gave up: it goes on as before
        if errors < MOST:
            since = None
        elif since is None:
            since = point["start_s"]
    return since


def _rest(report: Report) -> str:
    totals = report["totals"]
    parts = [rate(totals["good"], report["virtual_s"], "good answers")]
    if totals["shed"]:
        shed = (totals["shed_share"] or 0.0) * 100
        parts.append(f"{percent(shed)} of the attempts were shed{_by_priority(report)}")
    if totals["would_shed"]:
        would = 100 * totals["would_shed"] / totals["offered"]
        parts.append(f"{percent(would)} would have been shed")
    if totals["retries"]:
        parts.append(f"{percent(100 * totals['retries'] / totals['offered'])} of the attempts were retries")
    if (left := report["in_flight"]["end"]) > report["in_flight"]["mean"] * 2 and report["gate"] is None:
        parts.append(f"{number(left)} are still inside at the end")
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def _by_priority(report: Report) -> str:
    by_priority = report["by_priority"]
    if len(by_priority) < 2:
        return ""
    shares = (f"{one['priority']} {percent(100 * (one['shed_share'] or 0.0))}" for one in by_priority)
    return f" ({', '.join(shares)})"
