"""A run as a page with charts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tidegate.report.chart import Chart, Line
from tidegate.report.origin import Origin
from tidegate.report.page import Page, Section
from tidegate.report.table import Group, Table
from tidegate.report.words import number, percent
from tidegate.simulate import limits
from tidegate.simulate.report import Latency, Report, Tally
from tidegate.simulate.series import Row, rows
from tidegate.simulate.units import axis, duration, rate_unit
from tidegate.simulate.verdict import Verdict

_MOST_POINTS = 500
_MOST_ROWS = 100

# These look the same in every chart.
_GOOD, _SHED, _OFFERED, _LIMIT = 0, 1, 2, 3
_PRIORITIES = ("critical_plus", "critical", "sheddable_plus", "sheddable")


def as_page(report: Report, verdict: Verdict, origin: Origin) -> Page:
    """The page of a run."""
    return Page(
        title=f"Tidegate simulation: {report['scenario']['title']}",
        tone=verdict.tone,
        verdict=verdict.sentence,
        lead="A simulation in virtual time, in which requests meet the gate that ships. With the same seed "
        "it comes out the same.",
        sections=[_over_time(report), _whole(report)],
        parameters=list(_parameters(report)),
        origin=origin,
        figures=report,
        file_name="tidegate-simulation",
    )


def _parameters(report: Report) -> Iterator[tuple[str, str]]:
    yield "Gate", limits.parameter(report)
    yield "Time simulated", duration(report["virtual_s"])
    yield "Events", str(report["events"])
    yield (
        "In flight",
        f"{number(report['in_flight']['mean'])} on average, {report['in_flight']['peak']} at most",
    )
    yield "Seed", str(report["seed"])


# --- over time ---------------------------------------------------------------------------------------


def _over_time(report: Report) -> Section:
    merged = rows(report["series"], _MOST_POINTS)
    each = "" if len(merged) == len(report["series"]) else ", several intervals to a point"
    return Section(
        title="Over time",
        lead=f"A point for each interval, at its start{each}.",
        charts=[chart for chart in _charts(report, merged) if any(not line.empty for line in chart.lines)],
        tables=[_intervals(report), *filter(None, [limits.table(report)])],
    )


def _charts(report: Report, merged: Sequence[Row]) -> Iterator[Chart]:
    unit, unit_s = axis(report["virtual_s"])
    per, per_s = rate_unit(report["totals"]["offered"], report["virtual_s"])

    def chart(
        title: str, lines: Sequence[Line], say: Callable[[float | None], str], y_unit: str = ""
    ) -> Chart:
        return Chart(
            title=title,
            x_label="time",
            x=[row.start_s / unit_s for row in merged],
            x_unit=f" {unit}",
            lines=lines,
            y_unit=y_unit,
            say=say,
            top=105.0 if y_unit == "%" else None,
        )

    def line(name: str, ink: int, value: Callable[[Row], float | None], *, dashed: bool = False) -> Line:
        return Line(name, [value(row) for row in merged], ink, dashed=dashed)

    yield chart(
        f"Requests {per}",
        [
            line("offered", _OFFERED, lambda row: row.per(row.offered, per_s), dashed=True),
            line("shed", _SHED, lambda row: row.per(row.shed, per_s)),
            line("good answers", _GOOD, lambda row: row.per(row.good, per_s)),
        ],
        number,
    )
    yield chart(
        "Errors: late among admitted",
        [line("errors", _GOOD, lambda row: _hundredfold(row.error_rate))],
        percent,
        "%",
    )
    in_flight = [line("in flight", _GOOD, lambda row: row.in_flight)]
    if report["gate"] is not None:
        in_flight.insert(0, line("limit", _LIMIT, lambda row: row.limit, dashed=True))
    yield chart("In flight", in_flight, number)
    yield chart(
        "Time to a good answer",
        [
            line("p99", _SHED, lambda row: row.p99_s, dashed=True),
            line("p50", _GOOD, lambda row: row.p50_s),
        ],
        duration,
        "s",
    )
    coming = [one["priority"] for one in report["by_priority"]]
    if len(coming) > 1:
        yield chart(
            "Shed, by priority",
            [_shed(priority, merged) for priority in reversed(_PRIORITIES) if priority in coming],
            percent,
            "%",
        )


def _shed(priority: str, merged: Sequence[Row]) -> Line:
    shares = [_hundredfold(row.shed_by_priority.get(priority)) for row in merged]
    return Line(priority, shares, _PRIORITIES.index(priority))


def _intervals(report: Report) -> Table:
    unit, unit_s = axis(report["virtual_s"])
    merged = rows(report["series"], _MOST_ROWS)
    note = "Errors: late among those let in that came to something. "
    if len(merged) < len(report["series"]):
        note += "Several intervals to a row; p50 and p99 are those of the worst of them."
    return Table(
        caption="The series",
        headings=(
            *("from", "to", "offered", "good", "late", "errors", "shed"),
            *("in flight", "limit", "p50", "p99"),
        ),
        groups=[Group([list(_cells(row, unit, unit_s)) for row in merged])],
        note=note,
    )


def _cells(row: Row, unit: str, unit_s: float) -> Iterator[str]:
    for at in (row.start_s, row.start_s + row.length_s):
        yield f"{at / unit_s:g} {unit}"
    for count in (row.offered, row.good, row.late):
        yield str(count)
    yield percent(_hundredfold(row.error_rate))
    yield str(row.shed)
    yield number(row.in_flight)
    yield "none" if row.limit is None else str(row.limit)
    yield duration(row.p50_s)
    yield duration(row.p99_s)


def _hundredfold(share: float | None) -> float | None:
    return None if share is None else share * 100


# --- the whole run -----------------------------------------------------------------------------------


def _whole(report: Report) -> Section:
    several = report["by_priority"] if len(report["by_priority"]) > 1 else []
    counts = [
        *((one["priority"], *_counts(one, one["latency"])) for one in several),
        ("all", *_counts(report["totals"], report["latency"]["good"])),
    ]
    return Section(
        title="The whole run",
        lead="Counts are attempts: offered = good + late + shed + those that somebody waits for at the end.",
        charts=[],
        tables=[
            Table(
                caption="All figures",
                headings=(
                    *("", "offered", "retries", "admitted", "good", "late", "errors", "cancelled", "wasted"),
                    *("shed", "share", "would shed", "p50", "p95", "p99"),
                ),
                groups=[Group(counts)],
                note="Late: let in, and not answered when the client's patience ended. Of these, cancelled: "
                "the work ended at once; wasted: it went on, and came to its end.",
            )
        ],
    )


def _counts(tally: Tally, latency: Latency) -> Iterator[str]:
    for count in (tally["offered"], tally["retries"], tally["admitted"], tally["good"], tally["late"]):
        yield str(count)
    yield percent(_hundredfold(tally["error_rate"]))
    for count in (tally["cancelled"], tally["wasted"], tally["shed"]):
        yield str(count)
    yield percent(_hundredfold(tally["shed_share"]))
    yield str(tally["would_shed"])
    for seconds in (latency["p50_s"], latency["p95_s"], latency["p99_s"]):
        yield duration(seconds)
