"""A run as a page with charts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tidegate.capacity import figures
from tidegate.capacity.analysis import Level, Measured, Recommendation
from tidegate.capacity.conductor import Taken
from tidegate.capacity.units import MINUTE_S, rate
from tidegate.capacity.verdict import Verdict
from tidegate.report.chart import Chart, Draw, Line, Mark
from tidegate.report.origin import Origin
from tidegate.report.page import Page, Section
from tidegate.report.table import Group, Table
from tidegate.report.words import number, percent
from tidegate.simulate.units import duration

# These look the same in every chart.
_GOOD, _SHED, _OFFERED, _FITTED = 0, 1, 2, 3
_MOST_POINTS = 60


def as_page(
    found: Recommendation,
    taken: Sequence[Taken],
    verdict: Verdict,
    origin: Origin,
    *,
    data: object,
    parameters: Sequence[tuple[str, str]],
    timeout: float,
    toml: str,
    simulated: bool = False,
) -> Page:
    """The page of a run.

    Args:
        found: What the analysis made of it.
        taken: The steps.
        verdict: What to say first.
        origin: Where the figures come from.
        data: All figures, for programs.
        parameters: What was asked for.
        timeout: How long an answer may take, in seconds.
        toml: The recommendation as configuration, empty if there is none.
        simulated: Nothing real was tested.
    """
    sections = [
        _ramp([one for one in taken if one.step.phase == "ramp"], found, timeout),
        _sweep([one for one in taken if one.step.phase == "sweep"], found),
        _proof([one for one in taken if one.step.phase in ("before", "proof", "accept")], found),
    ]
    return Page(
        title="Tidegate capacity test",
        tone=verdict.tone,
        verdict=verdict.sentence,
        lead=("Simulated in virtual time. " if simulated else "")
        + "How much the target takes before it breaks, how many at a time it serves best, and what a gate "
        "with that limit does when more come.",
        sections=[section for section in sections if section is not None],
        parameters=[*parameters, *(("Reason", reason) for reason in found.reasons), *_toml(toml)],
        origin=origin,
        figures=data,
        file_name="tidegate-capacity",
    )


def _toml(text: str) -> Iterator[tuple[str, str]]:
    if text:
        yield "As configuration", text


# --- the ramp ----------------------------------------------------------------------------------------


def _ramp(taken: Sequence[Taken], found: Recommendation, timeout: float) -> Section | None:
    stages = sorted((one for one in taken if one.step.rate), key=lambda one: one.step.rate or 0.0)
    if not stages:
        return None
    latest = {one.step.rate: one for one in stages}  # one that was measured twice counts as it was last
    stages = list(latest.values())
    x = [MINUTE_S * (rate or 0.0) for rate in latest]

    def line(name: str, ink: int, value: Callable[[Measured], float | None], *, dashed: bool = False) -> Line:
        return Line(name, [value(one.measured) for one in stages], ink, dashed=dashed)

    def chart(title: str, lines: Sequence[Line], say: Callable[[float | None], str], **more: object) -> Chart:
        return Chart(title=title, x_label="offered a minute", x=x, lines=lines, say=say, **more)  # type: ignore[arg-type]

    charts = [
        chart(
            "Good answers a minute",
            [
                Line("offered", x, _OFFERED, dashed=True, draw=Draw.LINE),
                line("good", _GOOD, figures.good_per_min),
            ],
            number,
        ),
        chart(
            "Came to nothing: late, failed or withdrawn",
            [line("errors", _GOOD, lambda one: _hundredfold(figures.error_share(one)))],
            percent,
            y_unit="%",
            top=105.0,
        ),
        chart(
            "Time to a good answer",
            [
                line("p99", _SHED, lambda one: figures.quantile(one.latencies, 0.99), dashed=True),
                line("p95", _OFFERED, lambda one: figures.quantile(one.latencies, 0.95), dashed=True),
                line("p50", _GOOD, lambda one: figures.quantile(one.latencies, 0.5)),
            ],
            duration,
            y_unit="s",
            marks=(Mark(timeout, "timeout"),),
        ),
        chart("In flight, on average", [line("in flight", _GOOD, lambda one: one.in_flight)], number),
    ]
    low, high = found.breaking_point
    return Section(
        title="The ramp",
        lead=f"Without a gate. It holds {rate(low) if low is not None else 'no rate that was tried'}, and "
        f"breaks at {rate(high) if high is not None else 'none'}: the breaking point lies between.",
        charts=[one for one in charts if any(not line.empty for line in one.lines)],
        tables=[_steps("Stages", taken)],
    )


# --- the sweep ---------------------------------------------------------------------------------------


def _sweep(taken: Sequence[Taken], found: Recommendation) -> Section | None:
    if not taken:
        return None
    cells = [(one.measured.in_flight, figures.good_per_min(one.measured)) for one in taken]
    curve = _thinned(found.band)
    x = sorted({at for at, _ in cells} | {level.concurrency for level in curve})
    raw: dict[float, list[float | None]] = {}
    for at, value in cells:
        raw.setdefault(at, []).append(value)
    passes = max(len(values) for values in raw.values())
    measured = [
        Line(
            "measured",
            [raw[at][turn] if at in raw and turn < len(raw[at]) else None for at in x],
            _GOOD,
            draw=Draw.POINTS,
        )
        for turn in range(passes)
    ]
    chart = Chart(
        title="Good answers a minute",
        x_label="in flight",
        x=x,
        lines=[
            *measured,
            *(
                Line(name, _at(curve, x, value), _FITTED, dashed=name != "fitted", draw=Draw.LINE)
                for name, value in _FITTED_LINES
                if curve
            ),
        ],
        say=number,
        marks=() if found.best is None else (Mark(MINUTE_S * found.best[1], "the most measured"),),
    )
    return Section(
        title="Behind a gate, by its limit",
        lead=_curve_lead(found),
        charts=[chart],
        tables=[_steps("Cells", taken)],
    )


def _curve_lead(found: Recommendation) -> str:
    if found.limit is None:
        return "More comes than the gate lets in. No limit can be recommended."
    low, high = found.limit_interval or (None, None)
    interval = "" if low is None or high is None else f" (95 % interval {low:g} to {high:g})"
    return (
        f"More comes than the gate lets in. The recommended limit is {found.limit}{interval}: the smallest "
        "that comes to 95 % of the most, or less where the timeout asks for less."
    )


def _thinned(band: Sequence[Level]) -> Sequence[Level]:
    step = max(1, len(band) // _MOST_POINTS)
    return [level for at, level in enumerate(band) if at % step == 0 or at == len(band) - 1]


_FITTED_LINES: Sequence[tuple[str, Callable[[Level], float]]] = (
    ("fitted", lambda level: level.throughput),
    ("lower end", lambda level: level.low),
    ("upper end", lambda level: level.high),
)


def _at(curve: Sequence[Level], x: Sequence[float], value: Callable[[Level], float]) -> list[float | None]:
    """The curve at each x, between its points on a straight line: a gap would tear the line."""
    values: list[float | None] = []
    for at in x:
        after = next((level for level in curve if level.concurrency >= at), None)
        before = next((level for level in reversed(curve) if level.concurrency <= at), None)
        if after is None or before is None:
            values.append(None)
            continue
        width = after.concurrency - before.concurrency
        part = (at - before.concurrency) / width if width else 0.0
        values.append(MINUTE_S * (value(before) + part * (value(after) - value(before))))
    return values


# --- the proof ---------------------------------------------------------------------------------------


def _proof(taken: Sequence[Taken], found: Recommendation) -> Section | None:
    if not taken:
        return None
    lead = "The overload, without the gate and behind it."
    if found.gated_error is not None and found.error_upper is not None:
        lead += (
            f" Behind it {percent(100 * found.gated_error)} of those let in came to nothing, and with 95 % "
            f"confidence fewer than {percent(100 * found.error_upper)}."
        )
    rows = [
        (
            {"before": "without a gate", "proof": f"limit {one.step.limit}", "accept": "rate to accept"}[
                one.step.phase
            ],
            *_cells(one),
        )
        for one in taken
    ]
    return Section(
        title="Before and after",
        lead=lead,
        charts=[],
        tables=[Table(caption="Overload", headings=("", *_HEADINGS), groups=[Group(rows)], note=_NOTE)],
    )


# --- tables ------------------------------------------------------------------------------------------

_HEADINGS = (
    *("offered", "shed", "good", "good/min", "late", "failed", "withdrawn", "errors", "in flight"),
    *("p50", "p95", "p99", "end"),
)
_NOTE = (
    "Times are from the moment at which a request was meant to be sent. Withdrawn: taken back when the step "
    "was ended early, and counted as errors then."
)


def _steps(caption: str, taken: Sequence[Taken]) -> Table:
    by_limit = caption == "Cells"
    return Table(
        caption=caption,
        headings=("limit" if by_limit else "rate", *_HEADINGS),
        groups=[
            Group([(str(one.step.limit) if by_limit else rate(one.step.rate), *_cells(one)) for one in taken])
        ],
        note=_NOTE,
    )


def _cells(one: Taken) -> Iterator[str]:
    measured = one.measured
    for count in (measured.offered, measured.shed, measured.good):
        yield str(count)
    yield number(figures.good_per_min(measured))
    for count in (measured.late, measured.failed, figures.withdrawn(measured)):
        yield str(count)
    yield percent(_hundredfold(figures.error_share(measured)))
    yield number(measured.in_flight)
    for q in (0.5, 0.95, 0.99):
        yield duration(figures.quantile(measured.latencies, q))
    stopped = None if one.played is None else one.played.stopped
    yield measured.end if stopped is None else f"{measured.end}: {stopped}"


def _hundredfold(share: float | None) -> float | None:
    return None if share is None else share * 100
