"""A run as a page with charts. Pure, but for asking which SQLite this is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence

from tidegate.demo.report import Auto, Report, Row
from tidegate.demo.verdict import Verdict, as_json
from tidegate.report.chart import INKS, Chart, Line, Mark
from tidegate.report.origin import Origin
from tidegate.report.page import Page, Section, Tone
from tidegate.report.table import Group, Table
from tidegate.report.words import number, percent

# These look the same in every chart of every run; other arms take what is left, in order.
_INKS = ("tidegate", "semaphore", "ungated", "auto")

_MOMENT = 0.001


def as_page(report: Report, verdict: Verdict, origin: Origin) -> Page:
    """The page of a run."""
    return Page(
        title="Tidegate demo",
        tone=_tone(verdict),
        verdict=verdict.sentence,
        lead=f"A chatbot's requests to {_database(report)}, at {_spoken(_loads(report))} times the "
        f"{number(report.best_per_s)} a second that it can answer. Users wait {report.timeout:g} s, and who "
        "waits in vain tries again, twice at most.",
        sections=[_overload(report), *([_found(report)] if report.auto else []), _capacity(report)],
        parameters=list(_parameters(report)),
        origin=origin,
        figures=as_json(report, verdict),
        file_name="tidegate-demo",
    )


def _tone(verdict: Verdict) -> Tone:
    if not verdict.valid:
        return Tone.INVALID
    return Tone.HOLDS if verdict.holds else Tone.FAILS


def _loads(report: Report) -> list[float]:
    return sorted({row.load for row in report.rows})


def _spoken(loads: Sequence[float]) -> str:
    *others, last = [f"{load:g}" for load in loads]
    return f"{', '.join(others)} and {last}" if others else last


def _database(report: Report) -> str:
    return f"SQLite {sqlite3.sqlite_version}" if report.database == "sqlite" else report.database


def _parameters(report: Report) -> Iterator[tuple[str, str]]:
    yield "Database", _database(report)
    yield "Users wait", f"{report.timeout:g} s"
    yield "Limit of semaphore and gate", str(report.limit)
    yield "Workers behind them", str(report.workers)
    if (active := report.active_backends) is not None:
        when = f"Backends at work, ungated at {report.reference.load:g}x"
        yield when, f"{active.p50} in the median, {active.max} at most"
    yield "Load generator's lag, p99", f"{number(report.generator_lag_ms_p99)} ms"
    yield "Seed", str(report.seed)


# --- under load --------------------------------------------------------------------------------------


def _overload(report: Report) -> Section:
    return Section(
        title="Under load",
        lead="Load is in multiples of what the database can answer.",
        charts=[chart for chart in _charts(report) if chart.lines],
        tables=[_results(report)],
    )


def _charts(report: Report) -> Iterator[Chart]:
    best = Mark(report.best_per_s, "the database's best")
    timeout = Mark(report.timeout * 1000, f"users wait {report.timeout:g} s")
    yield _by_load(
        report, "Good answers a second", lambda row: row.goodput_ratio * report.best_per_s, marks=[best]
    )
    yield _by_load(report, "Errors: late among admitted", lambda row: _hundredfold(row.error_rate), unit="%")
    yield _by_load(
        report, "Essential requests answered", lambda row: _hundredfold(row.essential.success), unit="%"
    )
    yield _by_load(
        report,
        "Time to be told no: p99 (p50 dashed)",
        lambda row: row.shed_ms_p99,
        dashed=lambda row: row.shed_ms_p50,
        unit="ms",
    )
    yield _by_load(report, "Time to a good answer, p50", lambda row: row.p50_ms, unit="ms", marks=[timeout])
    yield _by_load(report, "Time to a good answer, p99", lambda row: row.p99_ms, unit="ms", marks=[timeout])


def _by_load(
    report: Report,
    title: str,
    value: Callable[[Row], float | None],
    *,
    dashed: Callable[[Row], float | None] | None = None,
    unit: str = "",
    marks: Sequence[Mark] = (),
) -> Chart:
    lines = [*_lines(report, value)]
    if dashed is not None:
        lines += _lines(report, dashed, dashed=True)
    return Chart(
        title=title,
        x_label="load",
        x=_loads(report),
        x_unit="x",
        log2_x=True,
        lines=lines,
        y_unit=unit,
        say=percent if unit == "%" else _milliseconds if unit == "ms" else number,
        top=105.0 if unit == "%" else None,
        marks=marks,
    )


def _lines(report: Report, value: Callable[[Row], float | None], *, dashed: bool = False) -> Iterator[Line]:
    """One for each arm that has any such value."""
    arms = list(dict.fromkeys(row.arm for row in report.rows))
    for arm in arms:
        found = {row.load: value(row) for row in report.rows if row.arm == arm}
        name = f"{arm} p50" if dashed else arm
        line = Line(name, [found.get(load) for load in _loads(report)], _ink(arm, arms), dashed=dashed)
        if not line.empty:
            yield line


def _ink(arm: str, arms: Sequence[str]) -> int:
    if arm in _INKS:
        return _INKS.index(arm)
    others = [other for other in arms if other not in _INKS]
    return len(_INKS) + others.index(arm) % (INKS - len(_INKS))


def _results(report: Report) -> Table:
    return Table(
        caption="All figures under load",
        headings=(
            *("", "offered", "good", "late", "shed", "errors", "good/s", "goodput"),
            *("p50 ms", "p99 ms", "shed p50 ms", "shed p99 ms", "essential good", "share"),
        ),
        groups=[
            Group(
                [list(_cells(row, report.best_per_s)) for row in report.rows if row.load == load],
                heading=f"{load:g}x load",
            )
            for load in _loads(report)
        ],
        note="Counts are attempts, and good + late + shed = offered. Good: answered in time. Late: admitted, "
        "and not. Errors: late among admitted. Goodput: good answers a second against the database's best.",
    )


def _cells(row: Row, best_per_s: float) -> Iterator[str]:
    yield row.arm
    for count in (row.offered, row.good, row.late, row.shed):
        yield str(count)
    yield percent(_hundredfold(row.error_rate))
    yield number(row.goodput_ratio * best_per_s)
    yield f"{row.goodput_ratio:.2f}"
    for milliseconds in (row.p50_ms, row.p99_ms, row.shed_ms_p50, row.shed_ms_p99):
        yield number(milliseconds)
    yield f"{row.essential.good} of {row.essential.offered}"
    yield percent(_hundredfold(row.essential.success))


def _hundredfold(share: float | None) -> float | None:
    return None if share is None else share * 100


def _milliseconds(value: float | None) -> str:
    return number(value) if value is None else f"{number(value)} ms"


# --- the limit that finds itself ---------------------------------------------------------------------


def _found(report: Report) -> Section:
    return Section(
        title="A limit that finds itself",
        lead="The arm auto is the gate with no limit given: it is told that users wait "
        f"{report.timeout:g} s, and nothing of the database. At each load it was watched as it looked, then "
        f"played in turns with the gate whose limit of {report.limit} follows from what was measured.",
        charts=[_path(auto, report) for auto in report.auto if auto.moves],
        tables=[
            Table(
                caption="Without a limit, against the given one",
                headings=(
                    *("load", "0.95 of the good answers after", "limit in the end", "moves"),
                    *("pairs of windows", "goodput, median of the pairs", "essential good", "share"),
                ),
                groups=[Group([tuple(_found_cells(auto)) for auto in report.auto])],
                note="Moves of the limit's centre: up, down, or down at once where most answers are late. "
                "The tenth up and down by which it experiments is not among them.",
            )
        ],
    )


def _path(auto: Auto, report: Report) -> Chart:
    """A limit stays until it moves: a point just before each move keeps the line from sloping there."""
    points: dict[float, float] = {}
    for before, move in zip((None, *auto.moves), auto.moves, strict=False):
        if before is not None:
            points[max(before.at, move.at - _MOMENT)] = before.limit
        points[move.at] = move.limit
    return Chart(
        title=f"The limit at {auto.load:g}x load",
        x_label="seconds",
        x=list(points),
        x_unit=" s",
        lines=[Line("auto", list(points.values()), _INKS.index("auto"))],
        marks=[Mark(report.limit, "given to the others")],
    )


def _found_cells(auto: Auto) -> Iterator[str]:
    yield f"{auto.load:g}x"
    yield f"not in {auto.searched:g} s" if auto.time_to_95 is None else f"{auto.time_to_95:.1f} s"
    yield str(auto.limit)
    yield str(len(auto.moves))
    yield str(auto.pairs)
    yield f"{auto.goodput_ratio:.2f}"
    yield f"{auto.essential.good} of {auto.essential.offered}"
    yield percent(_hundredfold(auto.essential.success))


# --- what the database can do ------------------------------------------------------------------------


def _capacity(report: Report) -> Section:
    reference = report.reference
    return Section(
        title="What the database can do",
        lead=f"Measured without a queue: {number(report.service_ms)} ms for one answer alone, and "
        f"{number(report.best_per_s)} answers a second at best. {report.workers} at a time come close to "
        "that, so this many work behind the semaphore and the gate.",
        charts=[
            Chart(
                title="Answers a second",
                x_label="requests at a time",
                x=[level.workers for level in report.curve],
                lines=[Line(report.database, [level.per_s for level in report.curve], ink=INKS - 1)],
            )
        ],
        tables=[
            Table(
                caption="Throughput by concurrency",
                headings=("requests at a time", "answers/s", "of the best"),
                groups=[
                    Group(
                        [
                            (
                                str(level.workers),
                                number(level.per_s),
                                percent(_hundredfold(level.per_s / report.best_per_s)),
                            )
                            for level in report.curve
                        ]
                    )
                ],
            ),
            Table(
                caption="Tidegate against the bare database, in turns",
                headings=("load", "pairs of windows", "goodput, median of the pairs"),
                groups=[
                    Group([(f"{reference.load:g}x", str(reference.pairs), f"{reference.goodput_ratio:.2f}")])
                ],
                note="A machine's speed drifts, so Tidegate's windows at the highest load were compared with "
                "windows of the database alone just before or after, at its best concurrency.",
            ),
        ],
    )
