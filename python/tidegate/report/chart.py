"""A chart of a report: lines over a common x. Pure: `assets/charts.js` draws it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidegate.report import words
from tidegate.report.markup import text

# Colours (in assets/page.css) and, for those who do not see them and for paper, shapes: corners, turn and
# size. What is drawn first should have a high ink: the low ones are smaller, and do not cover it.
_SHAPES = (
    (24, 0.0, 0.8),
    (4, 0.125, 1.1),
    (3, 0.0, 1.35),
    (4, 0.0, 1.35),
    (3, 0.5, 1.35),
    (6, 0.0, 1.0),
)
INKS = len(_SHAPES)


class Draw(StrEnum):
    """How a series is drawn."""

    BOTH = "both"
    LINE = "line"
    POINTS = "points"
    """What was measured, beside a line that was fitted to it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series."""

    name: str
    values: Sequence[float | None]
    """One for each x, finite; None where there is none."""
    ink: int
    """Colour and shape, from 0 to INKS - 1: the same thing has the same in every chart."""
    dashed: bool = False
    draw: Draw = Draw.BOTH

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return all(value is None for value in self.values)


@dataclass(frozen=True, slots=True)
class Mark:
    """A horizontal line to compare with."""

    at: float
    name: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over a common x. The y axis begins at 0."""

    title: str
    x_label: str
    x: Sequence[float]
    """In ascending order."""
    lines: Sequence[Line]
    x_unit: str = ""
    """Follows each x without a space."""
    y_unit: str = ""
    """Follows each y after a space."""
    say: Callable[[float | None], str] = words.number
    """How a y is written, with its unit where it has one."""
    log2_x: bool = False
    """Each doubling of x takes the same width."""
    top: float | None = None
    """Where the y axis ends; None: above the highest value and mark."""
    marks: Sequence[Mark] = ()

    def data(self) -> dict[str, object]:
        """What the script needs to draw it."""
        return {
            "x": self.x,
            "xLabel": self.x_label,
            "xUnit": self.x_unit,
            "yUnit": self.y_unit,
            "log2": self.log2_x,
            "top": self._top(),
            "marks": [{"at": mark.at, "name": mark.name} for mark in self.marks],
            "lines": [
                {
                    "ink": line.ink,
                    "shape": shape(line.ink),
                    "dashed": line.dashed,
                    "draw": line.draw,
                    "values": line.values,
                    "said": [self.say(value) for value in line.values],
                }
                for line in self.lines
            ],
        }

    def html(self, at: int) -> str:
        """Title, legend and an empty box: the one for entry `at` of the page's chart data.

        The legend has the values at the last x, until somebody points at another.
        """
        legend = "".join(
            f"<li>{_swatch(line)}{text(line.name)} <b>{text(self.say(line.values[-1]))}</b></li>"
            for line in self.lines
        )
        last = f"at {self.x[-1]:g}{self.x_unit}"
        return (
            f'<figure class="chart"><figcaption>{text(self.title)} <span>{text(last)}</span></figcaption>'
            f'<ul class="legend">{legend}</ul>'
            f'<div class="plot" data-chart="{at}" role="img" '
            f'aria-label="Chart: {text(self.title)}, by {text(self.x_label)}; its figures are in the tables">'
            "</div></figure>\n"
        )

    def _top(self) -> float:
        if self.top is not None:
            return self.top
        values = [value for line in self.lines for value in line.values if value is not None]
        # A little air, for the shapes and for a mark's name; and some height where all values are 0.
        return max([*values, *(mark.at for mark in self.marks)], default=0.0) * 1.12 or 1.0


def shape(ink: int) -> list[tuple[float, float]]:
    """The corners of an ink's shape, around 0 and about 1 away from it, y downwards."""
    corners, turn, size = _SHAPES[ink]
    angles = [math.tau * (corner / corners + turn - 0.25) for corner in range(corners)]
    return [(round(size * math.cos(angle), 3), round(size * math.sin(angle), 3)) for angle in angles]


def _swatch(line: Line) -> str:
    corners = " ".join(f"{x * 5:.1f},{y * 5:.1f}" for x, y in shape(line.ink))
    dashes = ' stroke-dasharray="4 3"' if line.dashed else ""
    path = "" if line.draw is Draw.POINTS else f'<path d="M-14 0H14"{dashes}/>'
    polygon = "" if line.draw is Draw.LINE else f'<polygon points="{corners}"/>'
    return f'<svg class="ink-{line.ink}" viewBox="-14 -7 28 14" aria-hidden="true">{path}{polygon}</svg>'
