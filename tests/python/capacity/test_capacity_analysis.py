"""The capacity test's state machine as Python has it. Its decisions are tested in Rust."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tidegate
from tidegate import ConfigError
from tidegate.capacity.analysis import (
    Law,
    Level,
    Measured,
    Plan,
    Recommendation,
    Reserved,
    Search,
    Share,
    SimulatedTarget,
    Step,
    Watch,
    error_upper,
    sample_size,
    thinned,
)

PLAN = Plan(timeout=180, accept=0.4, essential=0.3, before=True)


def article(seed: int = 1) -> SimulatedTarget:
    return SimulatedTarget(
        lambda_=0.05, sigma=0.02, kappa=5.55e-4, service="lognormal", cv=0.5, timeout=180, seed=seed
    )


def log(plan: Plan = PLAN) -> tuple[Search, list[tuple[Step, Measured]]]:
    search, target, steps = Search(plan), article(), []
    while (step := search.next()) is not None:
        steps.append((step, target.run(step)))
        search.report(*steps[-1])
    return search, steps


def test_all_that_is_recommended_has_its_type() -> None:
    search, steps = log()
    assert {step.phase for step, _ in steps} == {"baseline", "ramp", "sweep", "before", "proof", "accept"}
    found = search.recommendation()
    assert isinstance(found, Recommendation) and found.complete and found.reasons == ()
    low, high = found.breaking_point
    assert low is not None and high is not None and 40 / 60 < high < 1.2
    assert found.limit is not None and 25 <= found.limit <= 33
    assert found.limit_interval is not None and found.limit_interval[0] <= 29 <= found.limit_interval[1]
    assert found.rate is not None and 60 * found.rate == pytest.approx(33.9, rel=0.1)
    assert isinstance(found.law, Law) and found.law.fits and found.law.lambda_ == pytest.approx(0.05, rel=0.1)
    assert found.law.intervals is not None and len(found.law.intervals) == len(found.law.covariance) == 3
    assert all(isinstance(level, Level) for level in (*found.band, *found.points))
    assert isinstance(found.proof, Share) and found.proof.upper == found.error_upper < 0.01
    assert found.proof.limit == found.limit and found.proof.share == found.gated_error
    assert isinstance(found.before, Share) and found.before.share > 0.9 and found.before.limit is None
    assert isinstance(found.acceptance, Share) and found.accepted is True
    assert isinstance(found.thresholds, Reserved) and 0 < found.thresholds.threshold < found.limit
    toml = found.toml("orders")
    assert toml is not None and f"[gates.orders]\nlimit = {found.limit}\nobjective = " in toml
    assert f"sheddable = {found.thresholds.fraction}" in toml


def test_the_gate_of_the_configuration_loads(tmp_path: Path) -> None:
    found = log()[0].recommendation()
    text = found.toml("orders") or ""
    file = tmp_path / "tidegate.toml"
    file.write_text(text, encoding="utf-8")
    gate = tidegate.load(file)["orders"]
    assert gate.controller is not None and gate.controller.prior == found.limit
    assert gate.objective == PLAN.timeout
    assert gate.limit == found.limit and found.thresholds is not None
    assert gate.thresholds[tidegate.Priority.SHEDDABLE] == found.thresholds.threshold


def test_the_highest_rate_is_kept_where_no_gate_stands() -> None:
    free = next(step for step, _ in log()[1] if step.phase == "before")
    assert free.rate is not None
    most = 0.9 * free.rate
    _, steps = log(replace(PLAN, max_rate=most))
    bare = [step.rate for step, _ in steps if step.limit is None]
    assert len(bare) > 3
    assert max(rate or math.inf for rate in bare) == most
    assert {step.phase for step, _ in steps} >= {"before", "proof"}


def test_a_log_that_is_reported_again_goes_on_where_it_ended() -> None:
    whole, steps = log()
    again = Search(PLAN)
    for at, (step, measured) in enumerate(steps):
        assert again.next() == step == again.next()
        assert again.remaining()[0] > 0 and not again.recommendation().complete
        if at:
            with pytest.raises(ConfigError, match="of the step that was asked for"):
                again.report(steps[at - 1][0], measured)
        again.report(step, measured)
    assert again.next() is None and again.remaining() == (0, 0)
    assert again.recommendation() == whole.recommendation()
    with pytest.raises(ConfigError, match="of the step that was asked for"):
        again.report(*steps[-1])


def test_the_same_seed_sees_the_same() -> None:
    step = Search(PLAN).next()
    assert step is not None
    one, same, other = (article(seed).run(step) for seed in (1, 1, 2))
    assert one == same != other
    assert len(one.latencies) == min(one.good, 500)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"timeout": True}, "timeout must be a number, got True"),
        ({"timeout": "1"}, "timeout must be a number, got '1'"),
        ({"timeout": math.nan}, "timeout must be a number above 0"),
        ({"accept": False}, "accept must be a number, got False"),
        ({"accept": -1.0}, "accept must be a number above 0"),
        ({"accept": 2.0, "max_rate": 1.0}, "accept must be at most max_rate, 1, got 2"),
        ({"rates": [1.0, True]}, "each of rates must be a number, got True"),
        ({"rates": [2.0, 1.0]}, "rates must be in rising order"),
        ({"max_limit": 1.5}, "max_limit must be a whole number, got 1.5"),
        ({"max_limit": True}, "max_limit must be a whole number, got True"),
        ({"max_limit": 0}, "max_limit must be a whole number from 1"),
        ({"max_limit": 2**40}, "max_limit and seed must be whole numbers in their ranges"),
        ({"seed": -1}, "max_limit and seed must be whole numbers in their ranges"),
        ({"essential": 1.0}, "essential must be a share above 0 and below 1"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Search(Plan(**{"timeout": 180.0, **values}))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"seconds": 0.0}, "seconds must be a number above 0"),
        ({"seconds": True}, "seconds must be a number, got True"),
        ({"good": 1.0}, "good must be a whole number, 0 or more, got 1.0"),
        ({"late": True}, "late must be a whole number, 0 or more, got True"),
        ({"failed": -1}, "failed must be a whole number, 0 or more, got -1"),
        ({"offered": 2**63}, "offered must be a whole number"),
        ({"shed": 99}, "shed must be at most what was offered, got 99"),
        ({"in_flight": math.nan}, "in_flight must be a number from 0"),
        ({"latencies": [1.0, True]}, "each of latencies must be a number, got True"),
        ({"latencies": [math.inf]}, "each of latencies must be a number from 0"),
        ({"end": "well"}, 'end must be one of held, collapsed, aborted, lagged, got "well"'),
    ],
)
def test_what_breaks_a_rule_is_not_taken_down(values: dict[str, Any], said: str) -> None:
    search = Search(PLAN)
    step = search.next()
    assert step is not None
    measured = Measured(seconds=720.0, offered=36, good=36, in_flight=1.0)
    with pytest.raises(ConfigError, match=said):
        search.report(step, replace(measured, **values))
    assert search.next() == step
    search.report(step, measured)


def test_a_watch_says_why_and_how_it_ends() -> None:
    watch = Watch(10)
    assert watch.see(at=1, offered=10, good=10, in_flight=0) is None and watch.end == "held"
    found = [watch.see(at=at, offered=100 * at, good=at, in_flight=99 * at) for at in range(2, 10)]
    assert found[-1] is not None and "more comes in than gets out" in found[-1]
    assert watch.end == "aborted"
    failing = Watch(10)
    assert failing.see(at=1, offered=9, good=4, failed=5, in_flight=0) == "5 of 9 were late or failed"
    assert failing.end == "collapsed"
    for bad in (0, -1.0, math.nan, True, "1"):
        with pytest.raises(ConfigError, match="timeout must be"):
            Watch(bad)  # type: ignore[arg-type]


def test_bounds_and_sizes() -> None:
    assert [sample_size(failures) for failures in range(4)] == [299, 473, 628, 773]
    assert error_upper(0, 299) < 0.01 < error_upper(0, 298)
    assert error_upper(0, 100, 0.99) == pytest.approx(1 - 0.01 ** (1 / 100))
    assert sample_size(0, 1e-12) is None


def test_thinned_keeps_the_quantiles() -> None:
    assert thinned([3.0, 1.0, 2.0]) == [1.0, 2.0, 3.0] and thinned([]) == []
    few = thinned((float(at) for at in reversed(range(10_000))), 100)
    assert len(few) == 100 and few == [100.0 * at + 50 for at in range(100)]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"service": "pareto"}, "service must be one of lognormal, exponential"),
        ({"lambda_": 0.0}, "service.lambda: must be a number above 0"),
        ({"sigma": -1.0}, "service.sigma: must be a number from 0"),
        ({"timeout": math.nan}, "timeout|seconds"),
        ({"service": "hyperexponential", "cv": 0.5}, "service.sizes.cv: must be a number from 1"),
    ],
)
def test_a_target_that_is_none_is_refused(values: dict[str, Any], said: str) -> None:
    given = {"lambda_": 0.05, "sigma": 0.0, "kappa": 0.0, "service": "lognormal", "cv": 0.5, "timeout": 180.0}
    step = Search(PLAN).next()
    assert step is not None
    with pytest.raises(ConfigError, match=said):
        SimulatedTarget(**{**given, **values}, seed=1).run(step)
