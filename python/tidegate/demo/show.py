"""What a run looks like in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tidegate.demo.report import Auto, Report, Row
from tidegate.demo.verdict import Verdict


class Bar:
    """A progress bar, for the runner to move."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)
        self._begun = 0

    def begin(self, steps: int) -> None:
        """Set the length."""
        self._progress.update(self._task, total=steps)

    def step(self, what: str) -> None:
        """Name what begins, and move on."""
        self._progress.update(self._task, description=what, completed=self._begun)
        self._begun += 1


@contextmanager
def bar() -> Generator[Bar]:
    """A progress bar on standard error while the block runs."""
    columns = (
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    # Redrawn rarely: drawing takes time from the load generator, which is in the same process.
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=2, transient=True) as progress:
        yield Bar(progress)


def show(console: Console, report: Report, verdict: Verdict) -> None:
    """Print the whole run; the verdict is the last line and stays one line."""
    console.print(_database(report), highlight=False)
    console.print(_table(report))
    console.print(_notes(report), highlight=False)
    console.print()
    console.print(verdict.sentence, soft_wrap=True, highlight=False, markup=False)


def _database(report: Report) -> str:
    curve = ", ".join(f"{level.workers}: {level.per_s:.0f}" for level in report.curve)
    return (
        f"{report.database}: {report.service_ms:.1f} ms for one answer alone. "
        f"Answers/s by workers: {curve}. Best {report.best_per_s:.0f}/s, "
        f"from {report.workers} workers on. Users wait {report.timeout:g} s; limit {report.limit}."
    )


def _table(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, collapse_padding=True)
    for heading in ("load", "arm"):
        table.add_column(heading, no_wrap=True)
    for heading in (
        "offered",
        "good",
        "errors",
        "shed",
        "essential",
        "p50/p99 ms",
        "goodput",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in report.rows:
        last_of_load = row.arm == report.rows[-1].arm
        table.add_row(*_cells(row), end_section=last_of_load)
    return table


def _cells(row: Row) -> Iterator[str]:
    yield f"{row.load:g}x"
    yield row.arm
    yield str(row.offered)
    yield str(row.good)
    yield _percent(row.error_rate)
    yield str(row.shed)
    yield _percent(row.essential.success)
    yield f"{_whole(row.p50_ms)}/{_whole(row.p99_ms)}"
    yield f"{row.goodput_ratio:.2f}"


def _notes(report: Report) -> str:
    reference = report.reference
    notes = (
        "Counts are attempts: who waits in vain tries again, twice at most. Errors: late among "
        "admitted. Essential: share answered. Goodput: good answers/s against the best measured at "
        "the start. A machine's speed drifts, so Tidegate at "
        f"{reference.load:g}x was also measured in turns with reference windows of the bare "
        f"database: {reference.goodput_ratio:.2f} of the reference, the median of "
        f"{reference.pairs} pairs."
    )
    if report.active_backends is not None:
        notes += (
            f" Ungated at {reference.load:g}x, {report.active_backends.p50} backends of the database were at "
            f"work at once (median; {report.active_backends.max} at most). Stock is ungated too, with a pool "
            "of 5 connections and 10 more when these are not enough."
        )
    for auto in report.auto:
        notes += (
            f" Auto, with no limit given, at {auto.load:g}x {_found(auto)}; in turns with the given limit it "
            f"gave {auto.goodput_ratio:.2f} of its good answers, the median of {auto.pairs} pairs."
        )
    return notes


def _found(auto: Auto) -> str:
    limit = f"limit {auto.limit} in the end"
    if auto.time_to_95 is None:
        return f"did not come to 0.95 of the good answers within {auto.searched:g} s ({limit})"
    return f"came to 0.95 of the good answers after {auto.time_to_95:.1f} s ({limit})"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
