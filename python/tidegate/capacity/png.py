"""The curve as a picture, by matplotlib, for where an HTML page cannot go."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidegate.capacity import figures
from tidegate.capacity.analysis import Recommendation
from tidegate.capacity.conductor import Taken
from tidegate.capacity.units import MINUTE_S


def undrawable(path: Path) -> str | None:
    """Why no picture can be written there, or None."""
    from matplotlib import backend_bases

    canvas: Any = backend_bases.FigureCanvasBase
    kinds = sorted(canvas.get_supported_filetypes())
    if path.suffix[1:].lower() not in kinds:
        return f"cannot draw {path}: its name must end in one of {', '.join(kinds)}"
    if not path.parent.is_dir():
        return f"cannot write {path}: there is no folder {path.parent}"
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        return f"cannot write {path}: permission denied, or a folder"
    return None


def draw(path: Path, found: Recommendation, taken: Sequence[Taken], sentence: str) -> None:
    """Write throughput by concurrency, measured and fitted, with the recommended limit."""
    from matplotlib import figure as matplotlib_figure

    # Its types say less than pyright asks for.
    figure: Any = matplotlib_figure.Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    if found.band:
        n = [level.concurrency for level in found.band]
        at = [MINUTE_S * level.throughput for level in found.band]
        low = [MINUTE_S * level.low for level in found.band]
        high = [MINUTE_S * level.high for level in found.band]
        axes.fill_between(n, low, high, alpha=0.2)
        axes.plot(n, at, label="fitted, with its 95 % band")
    cells = [one.measured for one in taken if one.step.phase == "sweep"]
    axes.plot(
        [one.in_flight for one in cells],
        [figures.good_per_min(one) or 0.0 for one in cells],
        "o",
        label="measured",
    )
    if found.limit is not None:
        axes.axvline(found.limit, linestyle="--", label=f"recommended limit {found.limit}")
    axes.set(xlabel="in flight", ylabel="good answers a minute", ylim=(0, None))
    axes.set_title(sentence.partition(". ")[0], fontsize=9, wrap=True)
    axes.legend()
    figure.savefig(path, dpi=150)
