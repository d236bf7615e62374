"""`tidegate capacity --simulate`, without its command line. Many seeds are tested in Rust."""

from __future__ import annotations

import json

import pytest
from tidegate import ConfigError
from tidegate.capacity.analysis import Measured, Step
from tidegate.cli.capacity_simulate import Simulated, simulate


def test_the_articles_figures_in_minutes() -> None:
    seen: list[tuple[Step, Measured]] = []
    result = simulate(Simulated(seed=7), lambda step, measured: seen.append((step, measured)))
    assert seen == result.steps and len(seen) > 15
    figures = result.figures
    wanted = {"breaking_point", "limit", "limit_interval", "rate", "error_upper", "gated_error", "accepted"}
    assert wanted | {"verdict"} <= set(figures)
    assert json.loads(json.dumps(figures))["limit"] == figures["limit"]
    low, high = figures["breaking_point"]
    assert low <= 50 and high >= 40 and high / low < 1.13
    assert 25 <= figures["limit"] <= 33 and figures["rate"] == pytest.approx(33.9, rel=0.1)
    low, high = figures["limit_interval"]
    assert low <= figures["limit"] <= high
    assert figures["gated_error"] < 0.01 and figures["error_upper"] < 0.01 and figures["accepted"] is None
    assert "theory" in result.erlang and result.erlang.endswith("they agree")
    assert simulate(Simulated(seed=7)).figures == figures
    assert simulate(Simulated(seed=8)).figures != figures


def test_a_rate_after_scaling() -> None:
    scaled = {"sigma": 0.005, "kappa": 5.55e-4 / 16, "seed": 7}
    assert simulate(Simulated(accept=150, **scaled)).figures["accepted"] is True
    assert simulate(Simulated(accept=200, **scaled)).figures["accepted"] is False


def test_what_no_limit_satisfies() -> None:
    figures = simulate(Simulated(service="hyperexponential", seed=7)).figures
    assert figures["limit"] is None and figures["rate"] is None and figures["toml"] is None
    assert "classify or cap the expensive class" in figures["verdict"]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (Simulated(lambda_=0), "lambda must be a number above 0, got 0"),
        (Simulated(lambda_=float("nan")), "lambda must be a number above 0, got nan"),
        (Simulated(service="pareto"), "service must be one of"),
        (
            Simulated(service="exponential", cv=0.5),
            "cv goes with the services lognormal and hyperexponential",
        ),
        (Simulated(timeout=0), "timeout must be a number above 0"),
        (Simulated(accept=-1), "accept must be a number above 0"),
        (Simulated(kappa=-1), "service.kappa: must be a number from 0"),
    ],
)
def test_a_value_outside_its_range_is_named(target: Simulated, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        simulate(target)
