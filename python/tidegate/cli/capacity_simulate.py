"""`tidegate capacity --simulate`: the same search on a target in virtual time, hours of it in a second."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidegate import _native
from tidegate._errors import ConfigError
from tidegate.capacity.analysis import Measured, Plan, Recommendation, Search, SimulatedTarget, Step

MINUTE = 60.0

# For the self-check: a gate of ten places, offered as much as eight of them can do.
_ERLANG = (10, 8.0)

# Of what is not given: the article's queries, and the spread that `tidegate simulate --oracle` has.
_CV = {"lognormal": 0.5, "hyperexponential": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A target in virtual time; the article's unless something else is said. Rates are a minute."""

    lambda_: float = 3.0
    """Answers a minute of one alone."""
    sigma: float = 0.02
    """The share of the work that cannot be done at the same time."""
    kappa: float = 5.55e-4
    """What each pair costs."""
    service: str = "lognormal"
    """How service times vary: lognormal, exponential, deterministic or hyperexponential."""
    cv: float | None = None
    """Their coefficient of variation, lognormal (0.5) or hyperexponential (2)."""
    timeout: float = 180.0
    """How long clients wait, in seconds."""
    accept: float | None = None
    """A rate a minute that is to be sustained."""
    essential: float | None = None
    """The share of requests that are essential."""
    before: bool = False
    """Whether to offer the overload without a gate, too."""
    seed: int = 1
    """Of everything left to chance."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a simulated test came to."""

    figures: dict[str, Any]
    """For programs: rates are a minute."""
    recommendation: Recommendation
    """The same, as everywhere else: rates are a second."""
    steps: list[tuple[Step, Measured]]
    """All that was done, and seen."""
    erlang: str
    """What the simulated gate sheds beside what Erlang's formula says, in a sentence."""


def simulate(target: Simulated, progress: Callable[[Step, Measured], None] | None = None) -> Result:
    """Test a target in virtual time.

    Args:
        target: The target.
        progress: Called after each step.

    Raises:
        ConfigError: A value is outside its range.
    """
    if target.cv is not None and target.service not in _CV:
        raise ConfigError(f"cv goes with the services {' and '.join(_CV)}, got {target.service}")
    if not 0 < target.lambda_ < float("inf"):
        raise ConfigError(f"lambda must be a number above 0, got {target.lambda_}")
    search = Search(
        Plan(
            timeout=target.timeout,
            accept=None if target.accept is None else target.accept / MINUTE,
            essential=target.essential,
            before=target.before,
            seed=target.seed,
        )
    )
    simulated = SimulatedTarget(
        lambda_=target.lambda_ / MINUTE,
        sigma=target.sigma,
        kappa=target.kappa,
        service=target.service,
        cv=_CV.get(target.service, 1.0) if target.cv is None else target.cv,
        timeout=target.timeout,
        seed=target.seed,
    )
    steps: list[tuple[Step, Measured]] = []
    while (step := search.next()) is not None:
        measured = simulated.run(step)
        search.report(step, measured)
        steps.append((step, measured))
        if progress is not None:
            progress(step, measured)
    found = search.recommendation()
    return Result(_figures(found, target), found, steps, _erlang(target))


def _figures(found: Recommendation, target: Simulated) -> dict[str, Any]:
    low, high = found.breaking_point
    return {
        "seed": target.seed,
        "breaking_point": [_per_minute(low), _per_minute(high)],
        "limit": found.limit,
        "limit_interval": found.limit_interval,
        "rate": _per_minute(found.rate),
        "rate_interval": None
        if found.rate_interval is None
        else [_per_minute(rate) for rate in found.rate_interval],
        "error_upper": found.error_upper,
        "gated_error": found.gated_error,
        "accepted": found.accepted,
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "c95": found.c95,
        "c_timeout": found.c_timeout,
        "thresholds": None
        if found.thresholds is None
        else {
            "fraction": found.thresholds.fraction,
            "threshold": found.thresholds.threshold,
            "essential_shed": found.thresholds.essential_shed,
            "other_shed": found.thresholds.other_shed,
        },
        "toml": found.toml(),
    }


def _per_minute(rate: float | None) -> float | None:
    return None if rate is None else rate * MINUTE


def _erlang(target: Simulated) -> str:
    """The simulator's own check, with the target's service where no query slows another down."""
    limit, offered = _ERLANG
    text, _ = _native.oracle_erlang_b(limit, offered, service=target.service, seed=target.seed)
    found = json.loads(text)
    expected, simulated, stderr = found["expected"], found["simulated"], found["stderr"]
    verdict = "agree" if abs(simulated - expected) <= 3 * stderr else "DISAGREE"
    return (
        f"Erlang B, {limit} places offered {offered:g}: {expected:.5f} is shed in theory, "
        f"{simulated:.5f} +- {stderr:.5f} of {found['n']} by the simulated gate: they {verdict}"
    )
