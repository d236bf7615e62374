"""A demo and its simulation, side by side, and what differs in words.

Nothing of the model is set by a cell: it is fitted to the curve of the bare database alone. So a difference
is news about what the model does not know, and no failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate.demo.doors import UNLIMITED
from tidegate.demo.report import Row
from tidegate.simulate.like.causes import CAUSES, Cause, cause_of
from tidegate.simulate.like.figures import ERRORS, GOODPUT, KINDS, Kind
from tidegate.simulate.like.measured import Demo, LikeError
from tidegate.simulate.like.model import Model
from tidegate.simulate.like.predict import Simulate, predict
from tidegate.simulate.like.scenarios import Cell, cells, left_out

# What chance has left to say, once the users' moments are the demo's, is little: who is essential, and how
# long those pause who waited in vain.
RUNS = 10

# A little above the best can be chance.
_FASTER = 1.1


@dataclass(frozen=True, slots=True)
class Pair:
    """A cell of the demo, and what was predicted of it."""

    cell: Cell
    runs: Sequence[Row]

    def figures(self) -> Iterator[tuple[Kind, float, float, bool]]:
        """Predicted and measured, where both are, and whether they differ."""
        for kind in KINDS:
            measured, predicted = kind.of(self.cell.measured), kind.over(self.runs)
            if measured is not None and predicted is not None:
                yield kind, predicted.mean, measured, kind.differs(measured, predicted)


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure that was not as predicted."""

    load: float
    arm: str
    kind: Kind
    predicted: float
    measured: float
    cause: Cause

    @property
    def cell(self) -> str:
        """Where."""
        return f"{self.arm} at {self.load:g}x"

    @property
    def said(self) -> str:
        """What, plainly."""
        return f"predicted {self.kind.say(self.predicted)}, measured {self.kind.write(self.measured)}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of it."""

    demo: Demo
    model: Model
    seed: int
    pairs: Sequence[Pair]
    differences: Sequence[Difference]
    compared: int
    """How many figures were, of which `differences` differ."""
    notes: Sequence[str]
    """What had to be taken for granted: a sentence each."""

    @property
    def verdict(self) -> str:
        """What came of it, in a sentence."""
        highest = max(pair.cell.measured.load for pair in self.pairs)
        said = [_headline(pair) for pair in self.pairs if pair.cell.measured.load == highest]
        same = self.compared - len(self.differences)
        head = "Compared" if self.demo.valid else "Compared with an invalid demo, whose figures prove nothing"
        return f"{head}: {'; '.join(said)}. {same} of {self.compared} figures were as predicted."

    def explained(self) -> Iterator[tuple[str, Sequence[Difference]]]:
        """What the model does not know and what shows, with the differences that it may explain."""
        for cause in CAUSES:
            differences = [difference for difference in self.differences if difference.cause is cause]
            if differences:
                yield cause.say(self.demo, self.model), differences


def compare(
    demo: Demo, *, folder: Path, seed: int, simulate: Simulate, model: Model | None = None
) -> Comparison:
    """Fit a model to a demo, and predict each of its cells.

    Args:
        demo: What was measured.
        folder: Where the scenarios go.
        seed: Of the first run of each cell.
        simulate: The simulator.
        model: Another model than the one that fits.

    Raises:
        LikeError: There is nothing to compare.
        ConfigError: No model is near the demo's curve.
    """
    model = model or Model.fit(demo.curve)
    pairs = [
        Pair(
            cell,
            predict(demo, cell, folder, seed=seed, runs=RUNS, simulate=simulate),
        )
        for cell in cells(demo, model)
    ]
    unknown = left_out(demo)
    if not pairs:
        raise LikeError(f"loads: nothing to compare, got {', '.join(unknown) or 'nobody who came'}")
    notes = [
        *demo.inferred,
        *_faster(pairs),
        *(f"Nothing is predicted of {arm}." for arm in unknown),
    ]
    return Comparison(
        demo=demo,
        model=model,
        seed=seed,
        pairs=pairs,
        differences=[difference for pair in pairs for difference in _differences(demo, pair)],
        compared=sum(len(list(pair.figures())) for pair in pairs),
        notes=notes,
    )


def _faster(pairs: Sequence[Pair]) -> Iterator[str]:
    """Whether the database did more under load than when it was measured to do its best."""
    best = max((pair.cell.measured for pair in pairs), key=lambda row: row.goodput_ratio)
    if best.goodput_ratio > _FASTER:
        yield (
            f"Good answers of {best.arm} at {best.load:g}x reached {best.goodput_ratio:.2f} of the best that "
            "the database was measured to do: the machine was faster then, so predictions are too low."
        )


def _differences(demo: Demo, pair: Pair) -> Iterator[Difference]:
    for kind, predicted, measured, differs in pair.figures():
        if differs:
            worse = (measured < predicted) == kind.more_is_better
            cause = cause_of(demo, pair.cell, kind, worse)
            row = pair.cell.measured
            yield Difference(row.load, row.arm, kind, predicted, measured, cause)


def _headline(pair: Pair) -> str:
    """The one figure that an arm is about: errors where everybody may come in, goodput behind a gate."""
    row = pair.cell.measured
    kind = ERRORS if row.arm in UNLIMITED else GOODPUT
    measured, predicted = kind.of(row), kind.over(pair.runs)
    if measured is None or predicted is None:
        return f"{row.arm} at {row.load:g}x: nothing was admitted"
    return f"{row.arm} at {row.load:g}x predicted {kind.say(predicted.mean)}, measured {kind.write(measured)}"
