"""A comparison as a page with charts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from tidegate.report.chart import INKS, Chart, Line
from tidegate.report.origin import Origin
from tidegate.report.page import Page, Section, Tone
from tidegate.report.table import Group, Table
from tidegate.report.words import number, percent
from tidegate.simulate.like.compare import RUNS, Comparison, Pair
from tidegate.simulate.like.figures import ERRORS, ESSENTIAL, GOODPUT, KINDS, P50, RULE, Kind, mean
from tidegate.simulate.like.figures_of import figures_of

_COUNTS = ("offered", "good", "late", "shed")
_NAMES = {
    "error_rate": "errors",
    "goodput_ratio": "goodput",
    "essential": "essential good",
    "p50_ms": "p50",
    "p99_ms": "p99",
}

# The same as on the demo's page.
_INKS = ("tidegate", "semaphore", "ungated", "auto", "stock")


def as_page(found: Comparison, origin: Origin) -> Page:
    """The page of a comparison."""
    demo = found.demo
    return Page(
        title="Tidegate: a demo, and the simulator's prediction",
        tone=Tone.HOLDS if demo.valid else Tone.INVALID,
        verdict=found.verdict,
        lead=f"What the simulator makes of the demo, knowing of {demo.database} only what it can do when "
        "nobody queues. Measured with lines, predicted dashed.",
        sections=[_loads(found), _differences(found), _model(found)],
        parameters=list(_parameters(found)),
        origin=origin,
        figures=figures_of(found),
        file_name="tidegate-like",
    )


def _parameters(found: Comparison) -> Iterator[tuple[str, str]]:
    demo = found.demo
    yield "The demo's verdict", demo.verdict
    yield "Users wait", f"{demo.timeout:g} s"
    yield "Users come for", f"{demo.seconds:g} s"
    yield "Limit of semaphore and gate", str(demo.limit)
    yield "Workers behind them", str(demo.workers)
    yield "Runs of each cell", f"{RUNS}, from seed {found.seed}"


# --- under load --------------------------------------------------------------------------------------


def _loads(found: Comparison) -> Section:
    charts = [
        _chart(found, "Errors: late among admitted", ERRORS, percent, "%", 100.0),
        _chart(found, "Good answers, of the database's best", GOODPUT, number),
        _chart(found, "Essential requests answered", ESSENTIAL, percent, "%", 100.0),
        _chart(found, "Time to a good answer, p50", P50, _milliseconds, "ms"),
    ]
    return Section(
        title="Under load",
        lead=" ".join(["Load is in multiples of what the database can answer.", *found.notes]),
        charts=[chart for chart in charts if chart.lines],
        tables=[_figures(found)],
    )


def _chart(
    found: Comparison,
    title: str,
    kind: Kind,
    say: Callable[[float | None], str],
    unit: str = "",
    times: float = 1.0,
) -> Chart:
    loads = sorted({pair.cell.measured.load for pair in found.pairs})
    lines: list[Line] = []
    for arm in dict.fromkeys(pair.cell.measured.arm for pair in found.pairs):
        of_arm = {pair.cell.measured.load: pair for pair in found.pairs if pair.cell.measured.arm == arm}
        for name, dashed, value in ((arm, False, _measured), (f"{arm} predicted", True, _predicted)):
            values = [None if load not in of_arm else value(of_arm[load], kind) for load in loads]
            scaled = [None if one is None else one * times for one in values]
            lines.append(Line(name, scaled, _INKS.index(arm) if arm in _INKS else INKS - 1, dashed=dashed))
    return Chart(
        title=title,
        x_label="load",
        x=loads,
        x_unit="x",
        log2_x=True,
        lines=[line for line in lines if not line.empty],
        y_unit=unit,
        say=say,
        top=105.0 if unit == "%" else None,
    )


def _milliseconds(value: float | None) -> str:
    return number(value) if value is None else P50.write(value)


def _measured(pair: Pair, kind: Kind) -> float | None:
    return kind.of(pair.cell.measured)


def _predicted(pair: Pair, kind: Kind) -> float | None:
    figure = kind.over(pair.runs)
    return None if figure is None else figure.mean


def _figures(found: Comparison) -> Table:
    return Table(
        caption="Predicted and measured",
        headings=(
            *("", "", *_COUNTS),
            *_NAMES.values(),
        ),
        groups=[
            Group([row for pair in pairs for row in _rows(pair)], heading=f"{load:g}x load")
            for load, pairs in groupby(found.pairs, key=lambda pair: pair.cell.measured.load)
        ],
        note="Counts are attempts. Goodput: good answers a second against the database's best.",
    )


def _rows(pair: Pair) -> Iterator[Sequence[str]]:
    row = pair.cell.measured
    counts = [mean(pair.runs, name) for name in _COUNTS]
    yield row.arm, "predicted", *_cells(counts, [_predicted(pair, kind) for kind in KINDS])
    counts = [getattr(row, name) for name in _COUNTS]
    yield row.arm, "measured", *_cells(counts, [_measured(pair, kind) for kind in KINDS])


def _cells(counts: Sequence[float], figures: Sequence[float | None]) -> Iterator[str]:
    for count in counts:
        yield f"{count:.0f}"
    for kind, figure in zip(KINDS, figures, strict=True):
        yield "-" if figure is None else kind.write(figure)


# --- what differs ------------------------------------------------------------------------------------


def _differences(found: Comparison) -> Section:
    tables = [
        Table(
            caption="Not as predicted",
            headings=("", "figure", "predicted", "measured"),
            groups=[
                Group(
                    [
                        (
                            difference.cell,
                            _NAMES[difference.kind.key],
                            difference.kind.write(difference.predicted),
                            difference.kind.write(difference.measured),
                        )
                        for difference in differences
                    ]
                )
            ],
            note=cause,
        )
        for cause, differences in found.explained()
    ]
    return Section(
        title="What differs, and what the model does not know", lead=RULE, charts=[], tables=tables
    )


# --- the model ---------------------------------------------------------------------------------------


def _model(found: Comparison) -> Section:
    demo, model = found.demo, found.model
    workers = [level.workers for level in demo.curve]
    measured = [level.per_s for level in demo.curve]
    fitted = [model.per_s(at) for at in workers]
    return Section(
        title="The service model",
        lead="Fitted to the throughput of the bare database, and to nothing else of the demo: the Universal "
        f"Scalability Law with lambda {number(model.lambda_)} a second, sigma {model.sigma:.4f} and kappa "
        f"{model.kappa:.6f}, up to {model.processors} at a time, and no more throughput beyond.",
        charts=[
            Chart(
                title="Answers a second",
                x_label="requests at a time",
                x=workers,
                lines=[
                    Line("measured", measured, ink=INKS - 1),
                    Line("fitted", fitted, ink=INKS - 1, dashed=True),
                ],
            )
        ],
        tables=[
            Table(
                caption="Throughput by concurrency",
                headings=("requests at a time", "measured/s", "fitted/s"),
                groups=[
                    Group(
                        [
                            (str(at), number(one), number(other))
                            for at, one, other in zip(workers, measured, fitted, strict=True)
                        ]
                    )
                ],
            )
        ],
    )
