"""A capacity regression test: this run against the figures of an earlier one. Pure but for reading those."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tidegate.capacity.journal import difference
from tidegate.capacity.units import MINUTE_S, rate


class BaselineError(Exception):
    """A baseline that cannot be compared with."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What an earlier run found. Rates a minute."""

    per_min: float
    low: float
    high: float
    run: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What was tested and how, as far as it says."""

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """The capacity in what `tidegate capacity --json` wrote.

        Raises:
            BaselineError: There is none.
        """
        try:
            figures: Any = json.loads(path.read_text("utf-8"))
            found = figures["capacity"]
            run: object = figures.get("run", {})
        except OSError as error:
            raise BaselineError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise BaselineError(f"{path} is not what tidegate capacity --json wrote") from error
        if found is None:
            raise BaselineError(f"{path} is of a run that found no capacity to compare with")
        try:
            per_min, (low, high) = found["per_min"], found["interval"]
            if not 0 <= float(low) <= float(per_min) <= float(high) < math.inf:
                raise ValueError
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise BaselineError(f"{path} has a capacity that is none: {found}") from error
        if type(run) is not dict:
            raise BaselineError(f"{path} is not what tidegate capacity --json wrote")
        return cls(float(per_min), float(low), float(high), cast("dict[str, Any]", run))

    def of_another_kind(self, run: Mapping[str, Any]) -> str | None:
        """Why figures of this run cannot be compared with these, or None."""
        before, now = _kind(self.run), _kind(run)
        if before is None or before == now:
            return None
        return f"it is of a {before} target, and this run of a {now} one"

    def of_another(self, run: Mapping[str, Any]) -> str | None:
        """What else was tested then, or with another timeout, in words."""
        before, now = _tested(self.run), _tested(run)
        return None if not before or before == now else difference(before, now)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether capacity fell, and the sentence that says so."""

    fell: bool
    sentence: str


def compare(before: Baseline, now: dict[str, Any] | None, run: Mapping[str, Any] | None = None) -> Comparison:
    """Capacity has fallen where all that it may be now is below all that it may have been.

    Args:
        before: The earlier run's.
        now: This run's, as `figures.capacity` has it.
        run: What it tested and how.
    """
    found = _compare(before, now)
    other = None if run is None else before.of_another(run)
    if other is None:
        return found
    return Comparison(found.fell, f"{found.sentence} The baseline is of another run: {other}.")


def _compare(before: Baseline, now: dict[str, Any] | None) -> Comparison:
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


def _kind(run: Mapping[str, Any]) -> str | None:
    if "simulated" in run:
        return "simulated"
    target = run.get("target")
    return str(cast("dict[str, Any]", target).get("kind")) if isinstance(target, dict) else None


def _tested(run: Mapping[str, Any]) -> dict[str, Any]:
    """What figures depend on: the target, and for how long it may take. A simulation is told what to be."""
    if _kind(run) in (None, "simulated"):
        return {}
    plan = run.get("plan")
    timeout = cast("dict[str, Any]", plan).get("timeout") if isinstance(plan, dict) else None
    return {"target": run["target"], "timeout": timeout}


def _rate(per_min: float) -> str:
    return rate(per_min / MINUTE_S)
