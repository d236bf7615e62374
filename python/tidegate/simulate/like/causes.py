"""What the model does not know, and which differences that may explain. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate.demo.doors import UNLIMITED
from tidegate.simulate.like.figures import P50, P99, Kind
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


# About as many as the database can answer, from the one to the other.
_EDGE = (0.8, 1.25)


def _edge(_demo: Demo, cell: Cell, _kind: Kind, _worse: bool) -> bool:
    first, last = _EDGE
    return first <= cell.measured.load <= last


def _say_edge(_demo: Demo, _model: Model) -> str:
    return (
        "The model does not know the database's speed to a few per cent, and a machine's drifts by more. "
        "About as many users come here as it can answer, where so little decides whether a queue grows or "
        "drains."
    )


def _around_it(_demo: Demo, cell: Cell, kind: Kind, worse: bool) -> bool:
    return worse and cell.measured.load < _EDGE[0] and kind in (P50, P99)


def _say_around_it(_demo: Demo, _model: Model) -> str:
    return (
        "The model does not know the program around the database: pipes, the event loop, a thread that "
        "waits for its turn. Where nobody queues, that is what makes answers take longer. Nor does it know "
        "that one request is more work than another: it takes them as equal."
    )


def _many_at_work(demo: Demo, cell: Cell, _kind: Kind, _worse: bool) -> bool:
    many = cell.servers > demo.curve[-1].workers
    return many and cell.measured.arm in UNLIMITED and cell.measured.load > _EDGE[1]


def _say_many_at_work(demo: Demo, model: Model) -> str:
    last = demo.curve[-1]
    return (
        f"The model does not know what more than {last.workers} at a time do to the database: the demo's "
        f"curve ends there. It takes it that throughput stays at {model.per_s(last.workers):.3g}/s, however "
        "many threads a backend without a gate has."
    )


def _refusing(_demo: Demo, cell: Cell, _kind: Kind, worse: bool) -> bool:
    return worse and cell.measured.arm not in UNLIMITED and cell.measured.load > _EDGE[1]


def _say_refusing(demo: Demo, _model: Model) -> str:
    return (
        "The model does not know what users and refusals cost: in the demo they share the processors with "
        "the database, here they are free. Measured in turns with the bare database, Tidegate at "
        f"{demo.reference_load:g}x reached {demo.reference:.2f} of it. What is missing beyond that is the "
        "machine's speed, which was higher while the curve was measured."
    )


def _whatever(_demo: Demo, _cell: Cell, _kind: Kind, _worse: bool) -> bool:
    return True


def _say_nothing(_demo: Demo, _model: Model) -> str:
    return "For these the model has no explanation."


CAUSES: Sequence[Cause] = (
    Cause("edge", _edge, _say_edge),
    Cause("around_it", _around_it, _say_around_it),
    Cause("many_at_work", _many_at_work, _say_many_at_work),
    Cause("refusing", _refusing, _say_refusing),
    Cause("unknown", _whatever, _say_nothing),
)


def cause_of(demo: Demo, cell: Cell, kind: Kind, worse: bool) -> Cause:
    """The first that may be why."""
    return next(cause for cause in CAUSES if cause.explains(demo, cell, kind, worse))
