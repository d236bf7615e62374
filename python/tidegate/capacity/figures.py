"""All that a run found, as data for programs. Pure. Rates are per minute, times in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from tidegate.capacity.analysis import Measured, Recommendation, Reserved, Share
from tidegate.capacity.conductor import Taken
from tidegate.capacity.units import MINUTE_S

_QUANTILES = (("p50_s", 0.5), ("p95_s", 0.95), ("p99_s", 0.99))


def as_json(
    found: Recommendation,
    taken: Sequence[Taken],
    run: Mapping[str, object],
    *,
    verdict: str,
    holds: bool,
    notes: Sequence[str] = (),
    gate: str = "db",
) -> dict[str, object]:
    """The figures of a run.

    Args:
        found: What the analysis made of it.
        taken: The steps.
        run: What was tested and how.
        verdict: The sentence.
        holds: Whether it is good news.
        notes: Sentences about what limits the findings.
        gate: The name of the gate in the configuration.
    """
    return {
        "breaking_point": [per_min(end) for end in found.breaking_point],
        "limit": found.limit,
        "limit_interval": found.limit_interval,
        "rate": per_min(found.rate),
        "rate_interval": both_per_min(found.rate_interval),
        "c95": found.c95,
        "c_timeout": found.c_timeout,
        "error_upper": found.error_upper,
        "gated_error": found.gated_error,
        "accepted": found.accepted,
        "verdict": verdict,
        "holds": holds,
        "capacity": capacity(found),
        "proof": None if found.proof is None else share(found.proof),
        "acceptance": None if found.acceptance is None else share(found.acceptance),
        "thresholds": None if found.thresholds is None else thresholds(found.thresholds),
        "reasons": [*found.reasons, *notes],
        "law": None
        if found.law is None
        else {
            "lambda": per_min(found.law.lambda_),
            "sigma": found.law.sigma,
            "kappa": found.law.kappa,
            "fits": found.law.fits,
        },
        "band": [
            {
                "concurrency": level.concurrency,
                "per_min": per_min(level.throughput),
                "interval": [per_min(level.low), per_min(level.high)],
            }
            for level in found.band
        ],
        "toml": found.toml(gate),
        "run": run,
        "steps": [as_row(one) for one in taken],
    }


def as_row(one: Taken) -> dict[str, object]:
    """The figures of a step."""
    step, measured, played = one.step, one.measured, one.played
    row: dict[str, object] = {
        "number": step.number,
        "phase": step.phase,
        "rate": per_min(step.rate),
        "limit": step.limit,
        "seconds": measured.seconds,
        "offered": measured.offered,
        "shed": measured.shed,
        "good": measured.good,
        "late": measured.late,
        "failed": measured.failed,
        "withdrawn": withdrawn(measured),
        "good_per_min": good_per_min(measured),
        "in_flight": measured.in_flight,
        **{name: quantile(measured.latencies, q) for name, q in _QUANTILES},
        "end": measured.end,
    }
    if played is not None:
        row |= {
            "most_in_flight": played.most_in_flight,
            "failures": played.failures,
            "lag_p99_s": played.lag,
            "generator_busy": played.busy,
            "stopped": played.stopped,
        }
    return row


def withdrawn(measured: Measured) -> int:
    """Those that were taken back when a step was ended early.

    A simulated step counts what comes and what ends in the same time, so that answers may outnumber arrivals.
    """
    if measured.end == "held":
        return 0
    return max(0, measured.offered - measured.shed - measured.good - measured.late - measured.failed)


def good_per_min(measured: Measured) -> float | None:
    """Good answers a minute."""
    return MINUTE_S * measured.good / measured.seconds if measured.seconds > 0 else None


def error_share(measured: Measured) -> float | None:
    """The share that came to nothing of those that came to something; None if none did.

    What was withdrawn when a step was ended early was on its way to nothing: it was ended because of that.
    """
    wrong = measured.late + measured.failed + (withdrawn(measured) if measured.end != "held" else 0)
    answered = measured.good + wrong
    return wrong / answered if answered else None


def capacity(found: Recommendation) -> dict[str, object] | None:
    """The most good answers a minute that were found at any concurrency, with their interval.

    It is the highest of the fitted law, or where none fits of what was measured.
    """
    rows = found.band if found.law is not None and found.law.fits else found.points
    if not rows:
        return None
    best = max(rows, key=lambda level: level.throughput)
    return {
        "per_min": per_min(best.throughput),
        "interval": [per_min(best.low), per_min(best.high)],
        "concurrency": best.concurrency,
    }


def share(found: Share) -> dict[str, object]:
    """A share that was counted, and what it may be."""
    return {**asdict(found), "rate": per_min(found.rate)}


def thresholds(found: Reserved) -> dict[str, object]:
    """What keeps room for the essential."""
    return {**asdict(found), "rate": per_min(found.rate)}


def quantile(ordered: Sequence[float], q: float) -> float | None:
    """The value below which a share of them lies."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * q))] if ordered else None


def per_min(per_s: float | None) -> float | None:
    """A rate, per minute."""
    return None if per_s is None else per_s * MINUTE_S


def both_per_min(interval: tuple[float, float] | None) -> list[float | None] | None:
    """An interval of rates, per minute."""
    return None if interval is None else [per_min(end) for end in interval]
