"""A comparison as JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict

from tidegate.simulate.like.compare import RUNS, Comparison, Pair
from tidegate.simulate.like.figures import KINDS, mean

_COUNTS = ("offered", "good", "late", "shed")


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
                "sentence": f"{difference.cell}: {difference.said}",
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
    """Both sides under the demo's names; predicted are means, with standard deviations beside them."""
    row, runs = pair.cell.measured, pair.runs
    over = {kind.key: kind.over(runs) for kind in KINDS}
    return {
        "load": row.load,
        "arm": row.arm,
        "predicted": {
            **{name: mean(runs, name) for name in _COUNTS},
            **{key: None if found is None else found.mean for key, found in over.items()},
            "essential": {name: mean([run.essential for run in runs], name) for name in ("offered", "good")},
            "sd": {key: None if found is None else found.sd for key, found in over.items()},
        },
        "measured": {
            **{name: getattr(row, name) for name in _COUNTS},
            **{kind.key: kind.of(row) for kind in KINDS},
            "essential": asdict(row.essential),
        },
        "scenario": pair.cell.scenario,
    }
