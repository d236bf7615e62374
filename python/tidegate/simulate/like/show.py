"""What a comparison looks like in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tidegate.demo.report import Row
from tidegate.report.words import NOTHING, number, percent
from tidegate.simulate.like.compare import RUNS, Comparison
from tidegate.simulate.like.figures import KINDS, RULE, mean

_COUNTS = ("offered", "good", "shed")


def show(console: Console, found: Comparison) -> None:
    """Print all of it; the verdict is the last line and stays one line."""
    console.print(_model(found), highlight=False, markup=False)
    console.print(_table(found))
    for note in found.notes:
        console.print(note, highlight=False, markup=False)
    for cause, differences in found.explained():
        console.print(f"\n{cause}", highlight=False, markup=False)
        for cell, of_cell in groupby(differences, key=lambda difference: difference.cell):
            said = "; ".join(difference.said for difference in of_cell)
            console.print(f"- {cell}: {said}", highlight=False, markup=False)
    console.print(f"\n{RULE}", highlight=False, markup=False)
    console.print()
    console.print(found.verdict, soft_wrap=True, highlight=False, markup=False)


def _model(found: Comparison) -> str:
    demo, model = found.demo, found.model
    curve = ", ".join(
        f"{level.workers}: {number(model.per_s(level.workers))} ({number(level.per_s)})"
        for level in demo.curve
    )
    return (
        f"{demo.database}, fitted: lambda {number(model.lambda_)}/s, sigma {model.sigma:.4f}, "
        f"kappa {model.kappa:.6f}, up to {model.processors} at a time. Answers/s by workers, measured in "
        f"brackets: {curve}. Nothing else of the demo is fitted. Mean of {RUNS} runs from seed {found.seed}."
    )


def _table(found: Comparison) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, collapse_padding=True)
    for heading in ("load", "arm", ""):
        table.add_column(heading, no_wrap=True)
    for heading in (*_COUNTS, "errors", "goodput", "essential", "p50/p99 ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for pair in found.pairs:
        row = pair.cell.measured
        table.add_row(f"{row.load:g}x", row.arm, "predicted", *_predicted(pair.runs))
        table.add_row("", "", "measured", *_measured(row), end_section=True)
    return table


def _predicted(runs: Sequence[Row]) -> Iterator[str]:
    counts = [mean(runs, name) for name in _COUNTS]
    figures = [kind.over(runs) for kind in KINDS]
    yield from _cells(counts, [None if figure is None else figure.mean for figure in figures])


def _measured(row: Row) -> Iterator[str]:
    yield from _cells([getattr(row, name) for name in _COUNTS], [kind.of(row) for kind in KINDS])


def _cells(counts: Sequence[float], figures: Sequence[float | None]) -> Iterator[str]:
    errors, goodput, essential, p50, p99 = figures
    for count in counts:
        yield f"{count:.0f}"
    yield _percent(errors)
    yield NOTHING if goodput is None else f"{goodput:.2f}"
    yield _percent(essential)
    yield f"{_whole(p50)}/{_whole(p99)}"


def _percent(share: float | None) -> str:
    return percent(None if share is None else share * 100)


def _whole(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f}"
