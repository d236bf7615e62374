"""What a run looks like in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tidegate.capacity import figures
from tidegate.capacity.analysis import Recommendation, Step
from tidegate.capacity.conductor import Taken
from tidegate.capacity.generator import Now
from tidegate.capacity.units import rate
from tidegate.capacity.verdict import Verdict
from tidegate.report.words import number, percent
from tidegate.simulate.units import duration


class Bar:
    """A progress bar, for the conductor to move, with a line of what is going on."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, live="")
        self._done = 0.0

    def begin(self, step: Step, remaining: tuple[int, float]) -> None:
        """Name what begins."""
        _, seconds = remaining
        length = step.warm_up + step.seconds
        self._progress.update(
            self._task,
            description=said(step),
            completed=self._done,
            total=self._done + max(seconds, length),
            live="",
        )
        self._done += length

    def now(self, step: Step, now: Now) -> None:
        """Say how it goes."""
        counts = now.counts
        wrong = counts.late + counts.failed
        shed = f", shed {counts.shed}" if counts.shed else ""
        self._progress.update(
            self._task,
            completed=self._done - (step.warm_up + step.seconds) + now.at,
            live=f"in flight {now.in_flight}, good {counts.good} of {counts.offered}, wrong {wrong}{shed}",
        )


@contextmanager
def bar(*, hidden: bool = False) -> Generator[Bar]:
    """A progress bar on standard error while the block runs."""
    columns = (
        BarColumn(12),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[live]}"),
    )
    # Redrawn rarely: drawing takes time from the load generator, which is in the same process.
    with Progress(
        *columns, console=Console(stderr=True), refresh_per_second=2, transient=True, disable=hidden
    ) as progress:
        yield Bar(progress)


def said(step: Step) -> str:
    """A step in few words."""
    match step.phase:
        case "baseline":
            return "alone"
        case "ramp":
            return f"ramp {rate(step.rate)}"
        case "sweep":
            return f"gate {step.limit}"
        case "before":
            return "no gate"
        case _:
            return f"{step.phase} {step.limit}"


def show(
    console: Console, found: Recommendation, taken: Sequence[Taken], verdict: Verdict, toml: str
) -> None:
    """Print the whole run; the verdict is the last line and stays one line."""
    if taken:
        console.print(_table(taken))
    for reason in found.reasons:
        if reason[1:] in verdict.sentence:  # which begins it with a capital
            continue
        console.print(reason, soft_wrap=True, highlight=False, markup=False)
    if toml:
        console.print(toml, soft_wrap=True, highlight=False, markup=False)
    console.print(verdict.sentence, soft_wrap=True, highlight=False, markup=False)


def _table(taken: Sequence[Taken]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, collapse_padding=True)
    table.add_column("step", no_wrap=True)
    for heading in ("offered", "good/min", "errors", "shed", "inside", "p50", "p99"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("end", no_wrap=True)
    for at, one in enumerate(taken):
        last = at + 1 == len(taken) or taken[at + 1].step.phase != one.step.phase
        table.add_row(*_cells(one), end_section=last)
    return table


def _cells(one: Taken) -> Iterator[str]:
    measured = one.measured
    errors = figures.error_share(measured)
    yield said(one.step)
    yield str(measured.offered)
    yield number(figures.good_per_min(measured))
    yield percent(None if errors is None else 100 * errors)
    yield str(measured.shed)
    yield number(measured.in_flight)
    yield duration(figures.quantile(measured.latencies, 0.5))
    yield duration(figures.quantile(measured.latencies, 0.99))
    yield measured.end
