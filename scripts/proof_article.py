"""The simulator against the article minute by minute, as part of `make proof`.

tests/oracles/article.json is of an independent program, with other random numbers: for each case and minute
it has means over sixty seeds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, variance
from typing import Any

from tidegate import _native

FAR = 3.0
"""Standard errors from which on something fails."""

SEEDS = range(60)
"""As many as those of the independent simulation."""

KEYS = ("error", "shed_share", "good_per_min")
SHOWN = (3, 6, 9, 12, 18, 29)


@dataclass(frozen=True)
class Compared:
    """One figure of one minute: ours, theirs, and how far apart they are in standard errors."""

    ours: float
    theirs: float
    distance: float


@dataclass(frozen=True)
class Case:
    """A case of the article, minute by minute."""

    name: str
    minutes: list[dict[str, Compared]]

    def farthest(self, key: str) -> tuple[float, int]:
        """The largest distance and its minute."""
        return max((minute[key].distance, at) for at, minute in enumerate(self.minutes))

    @property
    def passed(self) -> bool:
        """Whether none is too far."""
        return all(self.farthest(key)[0] <= FAR for key in KEYS)


def scenario(case: dict[str, Any]) -> str:
    """A case as a scenario."""
    gate = "" if case["limit"] is None else f"[gate]\nlimit = {case['limit']}\n\n"
    return (
        f'title = "{case["name"]}"\nduration = "{len(case["minutes"])}min"\n\n{gate}'
        f'[arrivals]\nrate = "{case["rate_per_min"]}/min"\n\n'
        f'[service]\nkind = "shared"\nlambda = "{case["lam_per_min"]}/min"\nsigma = {case["sigma"]}\n'
        f"kappa = {case['kappa']:.12f}\n"
        'sizes = { kind = "lognormal", cv = 0.5 }\n\n'
        f'[clients]\ntimeout = "{case["timeout_min"]}min"\non_timeout = "abandon"\n'
    )


def compare(case: dict[str, Any]) -> Case:
    """Run a case with all seeds, and compare it with the independent simulation."""
    name, text = case["name"], scenario(case)
    runs = [json.loads(_native.simulate(text, f"{name}.toml", seed))["series"] for seed in SEEDS]
    minutes = zip(case["minutes"], zip(*runs, strict=True), strict=True)
    return Case(name, [_minute(there, points, case["rate_per_min"]) for there, points in minutes])


def _minute(there: dict[str, float], points: Sequence[dict[str, Any]], rate: float) -> dict[str, Compared]:
    errors = [point["error_rate"] or 0.0 for point in points]
    good = [float(point["good"]) for point in points]
    # A share of all arrivals, rather than a mean of shares: its variance is that of the residuals.
    offered = mean(point["offered"] for point in points)
    shed = sum(point["shed"] for point in points) / (offered * len(points))
    residuals = [shed + (point["shed"] - shed * point["offered"]) / offered for point in points]
    # Their spread is known of the errors alone. Ours stands in for theirs of the sheds, and of the good
    # answers, whose spread is at least the errors', of as many outcomes as there are arrivals.
    spread = max(variance(good), (there["sd"] * rate) ** 2)
    return {
        "error": _compare(errors, there["error"], there["sd"] ** 2, 5e-5),
        "shed_share": _compare(residuals, there["shed_share"], variance(residuals), 5e-5),
        "good_per_min": _compare(good, there["good_per_min"], spread, 5e-3),
    }


def _compare(ours: Sequence[float], theirs: float, their_variance: float, rounding: float) -> Compared:
    """What lies within the rounding of the table is not apart."""
    off = max(abs(mean(ours) - theirs) - rounding, 0.0)
    error = math.sqrt((variance(ours) + their_variance) / len(ours))
    return Compared(mean(ours), theirs, off / error if off else 0.0)


def section(cases: Sequence[Case]) -> list[str]:
    """The part of the page about the article."""
    found = [
        "## The article's collapse",
        "",
        "Each case of `tests/oracles/article.json`, which an independent program simulated with 60 seeds:",
        f"ours are the seeds {SEEDS[0]} to {SEEDS[-1]}. For each of the 30 minutes, the distance of the two",
        "means in standard errors of their difference; here are the largest, with their minutes. A few of so",
        "many comparisons come near 3 by chance.",
        "",
        "To repeat a line: `make proof ARGS='--only \"article: NAME\"'`.",
        "",
        "| case | errors | sheds | good answers | |",
        "|---|---|---|---|---|",
    ]
    for case in cases:
        worst = [f"{distance:.2f} (minute {at})" for distance, at in map(case.farthest, KEYS)]
        found.append(f"| {case.name} | {' | '.join(worst)} | {'passed' if case.passed else '**failed**'} |")
    found += [
        "",
        "The share of errors at some minutes, ours and theirs:",
        "",
        f"| case | {' | '.join(f'minute {at}' for at in SHOWN)} |",
        f"|---|{'---|' * len(SHOWN)}",
    ]
    for case in cases:
        pairs = [case.minutes[at]["error"] for at in SHOWN]
        cells = [f"{pair.ours:.3f} / {pair.theirs:.3f}" for pair in pairs]
        found.append(f"| {case.name} | {' | '.join(cells)} |")
    return [*found, ""]
