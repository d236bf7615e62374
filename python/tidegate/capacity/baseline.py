"""A capacity regression test: this run against the figures of an earlier one. Pure but for reading those."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.capacity.units import MINUTE_S, rate


class BaselineError(Exception):
    """A baseline that cannot be compared with."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What an earlier run found. Rates a minute."""

    per_min: float
    low: float
    high: float

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """The capacity in what `tidegate capacity --json` wrote.

        Raises:
            BaselineError: There is none.
        """
        try:
            figures: Any = json.loads(path.read_text("utf-8"))
            found = figures["capacity"]
        except OSError as error:
            raise BaselineError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise BaselineError(f"{path} is not what tidegate capacity --json wrote") from error
        if found is None:
            raise BaselineError(f"{path} is of a run that found no capacity to compare with")
        try:
            per_min, (low, high) = found["per_min"], found["interval"]
            if not 0 <= float(low) <= float(per_min) <= float(high):
                raise ValueError
        except (ValueError, KeyError, TypeError) as error:
            raise BaselineError(f"{path} has a capacity that is none: {found}") from error
        return cls(float(per_min), float(low), float(high))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether capacity fell, and the sentence that says so."""

    fell: bool
    sentence: str


def compare(before: Baseline, now: dict[str, Any] | None) -> Comparison:
    """Capacity has fallen where all that it may be now is below all that it may have been.

    Args:
        before: The earlier run's.
        now: This run's, as `figures.capacity` has it.
    """
    if now is None:
        return Comparison(
            True, "Capacity could not be determined, so it cannot be said that it has not fallen."
        )
    low, high = now["interval"]
    change = now["per_min"] / before.per_min - 1 if before.per_min else 0.0
    figures = (
        f"{_rate(now['per_min'])} [{_rate(low)}, {_rate(high)}] now, "
        f"{_rate(before.per_min)} [{_rate(before.low)}, {_rate(before.high)}] before"
    )
    if high < before.low:
        return Comparison(True, f"Capacity fell by {-change:.1%}, more than its interval: {figures}.")
    if low > before.high:
        return Comparison(False, f"Capacity rose by {change:.1%}: {figures}; make this the next baseline.")
    return Comparison(False, f"Capacity is as it was, {change:+.1%}, within its interval: {figures}.")


def _rate(per_min: float) -> str:
    return rate(per_min / MINUTE_S)
