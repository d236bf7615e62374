"""The curve as a picture, by matplotlib, for where an HTML page cannot go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidegate.capacity import figures
from tidegate.capacity.analysis import Recommendation
from tidegate.capacity.conductor import Taken
from tidegate.capacity.units import MINUTE_S


def draw(path: Path, found: Recommendation, taken: Sequence[Taken], sentence: str) -> None:
    """Write throughput by concurrency, measured and fitted, with the recommended limit."""
    from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    figure = Figure(figsize=(8, 5), layout="constrained")  # pyright: ignore[reportUnknownVariableType]
    axes = figure.subplots()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if found.band:
        n = [level.concurrency for level in found.band]
        at = [MINUTE_S * level.throughput for level in found.band]
        low = [MINUTE_S * level.low for level in found.band]
        high = [MINUTE_S * level.high for level in found.band]
        axes.fill_between(n, low, high, alpha=0.2)  # pyright: ignore[reportUnknownMemberType]
        axes.plot(n, at, label="fitted, with its 95 % band")  # pyright: ignore[reportUnknownMemberType]
    cells = [one.measured for one in taken if one.step.phase == "sweep"]
    axes.plot(  # pyright: ignore[reportUnknownMemberType]
        [one.in_flight for one in cells], [figures.good_per_min(one) for one in cells], "o", label="measured"
    )
    if found.limit is not None:
        axes.axvline(found.limit, linestyle="--", label=f"recommended limit {found.limit}")  # pyright: ignore[reportUnknownMemberType]
    axes.set(xlabel="in flight", ylabel="good answers a minute", ylim=(0, None))  # pyright: ignore[reportUnknownMemberType]
    axes.set_title(sentence.partition(". ")[0], fontsize=9, wrap=True)  # pyright: ignore[reportUnknownMemberType]
    axes.legend()  # pyright: ignore[reportUnknownMemberType]
    figure.savefig(path, dpi=150)  # pyright: ignore[reportUnknownMemberType]
