"""What the model does not know, and which differences that may explain. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidegate.demo.doors import UNLIMITED
from tidegate.simulate.like.figures import Kind
from tidegate.simulate.like.measured import Demo
from tidegate.simulate.like.model import Model
from tidegate.simulate.like.scenarios import Cell


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that the model does not know."""

    key: str
    """In JSON."""
    explains: Callable[[Demo, Cell, Kind, bool], bool]
    """Whether it may be why a figure of a cell was not as predicted, given whether it was worse."""
    say: Callable[[Demo, Model], str]


def _many_at_work(demo: Demo, cell: Cell, _kind: Kind, _worse: bool) -> bool:
    return cell.measured.arm in UNLIMITED and cell.servers > demo.curve[-1].workers and not _light(cell)


def _say_many_at_work(demo: Demo, model: Model) -> str:
    last = demo.curve[-1]
    return (
        f"The model does not know what more than {last.workers} at a time do to the database: the demo's curve "
        f"ends there. It takes it that throughput stays at {model.per_s(last.workers):.3g}/s, also for the "
        f"threads of a backend without a gate."
    )


def _around_it(_demo: Demo, cell: Cell, kind: Kind, worse: bool) -> bool:
    return worse and _light(cell) and kind.key in ("p50_ms", "p99_ms")


def _say_around_it(_demo: Demo, _model: Model) -> str:
    return (
        "The model does not know the program around the database: pipes, the event loop, a thread that waits for "
        "its turn. Where nobody queues, that is what makes answers take longer. Nor does it know that one "
        "request is more work than another: it takes them as equal."
    )


def _refusing(_demo: Demo, cell: Cell, _kind: Kind, worse: bool) -> bool:
    return worse and cell.measured.arm not in UNLIMITED and cell.measured.shed > 0


def _say_refusing(demo: Demo, _model: Model) -> str:
    return (
        "The model does not know what users and refusals cost: here they share the processors with the database, "
        f"there they are free. Measured in turns with the bare database, Tidegate at {demo.reference_load:g}x "
        f"reached {demo.reference:.2f} of it, so about {max(0.0, 1 - demo.reference):.2f} goes there. The rest of "
        "a gap is that the machine was slower then than while the curve was measured."
    )


def _light(cell: Cell) -> bool:
    return cell.measured.late == 0 and cell.measured.shed == 0


CAUSES = (
    Cause("many_at_work", _many_at_work, _say_many_at_work),
    Cause("around_it", _around_it, _say_around_it),
    Cause("refusing", _refusing, _say_refusing),
    Cause("unknown", lambda *_: True, lambda *_: "For these the model has no explanation."),
)
BY_KEY: Mapping[str, Cause] = {cause.key: cause for cause in CAUSES}


def cause_of(demo: Demo, cell: Cell, kind: Kind, worse: bool) -> Cause:
    """The first that may be why."""
    return next(cause for cause in CAUSES if cause.explains(demo, cell, kind, worse))
