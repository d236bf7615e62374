"""A comparison as JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict

from tidegate.simulate.like.compare import RUNS, Comparison, Pair
from tidegate.simulate.like.figures import KINDS


def figures_of(found: Comparison) -> dict[str, object]:
    """All of it; counts and shares have the demo's names."""
    demo, model = found.demo, found.model
    return {
        "verdict": found.verdict,
        "demo": {
            **{name: getattr(demo, name) for name in ("database", "seed", "timeout", "seconds", "arrivals")},
            **{name: getattr(demo, name) for name in ("limit", "workers", "best_per_s", "valid")},
            "verdict": demo.verdict,
        },
        "model": {
            "lambda": model.lambda_,
            "sigma": model.sigma,
            "kappa": model.kappa,
            "processors": model.processors,
            "curve": [
                {
                    "workers": level.workers,
                    "measured_per_s": level.per_s,
                    "fitted_per_s": model.per_s(level.workers),
                }
                for level in demo.curve
            ],
        },
        "seed": found.seed,
        "runs": RUNS,
        "loads": [_pair(pair) for pair in found.pairs],
        "differences": [
            {
                "load": difference.load,
                "arm": difference.arm,
                "figure": difference.kind.key,
                "predicted": difference.predicted,
                "measured": difference.measured,
                "cause": difference.cause.key,
                "sentence": difference.sentence,
            }
            for difference in found.differences
        ],
        "causes": [
            {"cause": differences[0].cause.key, "sentence": sentence}
            for sentence, differences in found.explained()
        ],
        "notes": list(found.notes),
    }


def _pair(pair: Pair) -> dict[str, object]:
    row, predicted = pair.cell.measured, pair.predicted
    counts = ("offered", "good", "late", "shed")
    return {
        "load": row.load,
        "arm": row.arm,
        "predicted": {
            **{name: getattr(predicted, name) for name in counts},
            **{kind.key: asdict(found) if (found := kind.predicted(predicted)) else None for kind in KINDS},
        },
        "measured": {
            **{name: getattr(row, name) for name in counts},
            **{kind.key: kind.measured(row) for kind in KINDS},
        },
        "scenario": pair.cell.scenario,
    }
