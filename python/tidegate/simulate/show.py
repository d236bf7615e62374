"""What a run looks like in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tidegate.report.words import NOTHING, number, percent
from tidegate.simulate import limits
from tidegate.simulate.report import Latency, Report, Tally
from tidegate.simulate.series import Row, rows
from tidegate.simulate.units import axis, duration, rate_unit
from tidegate.simulate.verdict import Verdict

_MOST_ROWS = 24


def show(console: Console, report: Report, verdict: Verdict) -> None:
    """Print the whole run; the verdict is the last line and stays one line."""
    console.print(_head(report), highlight=False, markup=False)
    console.print(_totals(report))
    console.print(_series(report))
    if (path := limits.path(report)) is not None:
        console.print(path, highlight=False, markup=False)
    console.print(verdict.sentence, soft_wrap=True, highlight=False, markup=False)


def _head(report: Report) -> str:
    return (
        f"{report['scenario']['title']}: {duration(report['virtual_s'])} {limits.behind(report)}, "
        f"seed {report['seed']}. "
        f"In flight {number(report['in_flight']['mean'])} on average, {report['in_flight']['peak']} at most."
    )


def _table(*headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, collapse_padding=True)
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="right" if at else "left", no_wrap=True)
    return table


def _totals(report: Report) -> Table:
    headings = ["", "offered", "good", "late", "errors", "shed", "share", "p50", "p99"]
    would = report["totals"]["would_shed"] > 0
    table = _table(*headings, *(["would shed"] if would else []))
    by_priority = report["by_priority"]
    for one in by_priority if len(by_priority) > 1 else []:
        table.add_row(one["priority"], *_counts(one, one["latency"], would=would))
    table.add_row("all", *_counts(report["totals"], report["latency"]["good"], would=would))
    return table


def _counts(tally: Tally, latency: Latency, *, would: bool) -> Iterator[str]:
    for count in (tally["offered"], tally["good"], tally["late"]):
        yield str(count)
    yield _percent(tally["error_rate"])
    yield str(tally["shed"])
    yield _percent(tally["shed_share"])
    yield duration(latency["p50_s"])
    yield duration(latency["p99_s"])
    if would:
        yield str(tally["would_shed"])


def _series(report: Report) -> Table:
    unit, unit_s = axis(report["virtual_s"])
    _, per_s = rate_unit(report["totals"]["offered"], report["virtual_s"])
    per = "/min" if per_s > 1 else "/s"
    table = _table(unit, f"offered{per}", f"good{per}", "errors", f"shed{per}", "in flight", "p50", "p99")
    for row in rows(report["series"], _MOST_ROWS):
        table.add_row(*_cells(row, unit_s, per_s))
    return table


def _cells(row: Row, unit_s: float, per_s: float) -> Iterator[str]:
    yield f"{row.start_s / unit_s:g}"
    yield number(row.per(row.offered, per_s))
    yield number(row.per(row.good, per_s))
    yield _percent(row.error_rate)
    yield number(row.per(row.shed, per_s))
    yield number(row.in_flight) + (f" of {row.limit}" if row.limit is not None else "")
    yield duration(row.p50_s)
    yield duration(row.p99_s)


def _percent(share: float | None) -> str:
    return NOTHING if share is None else percent(share * 100)
