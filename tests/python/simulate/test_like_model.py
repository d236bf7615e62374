"""The service model of a demo's database."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tidegate import ConfigError
from tidegate.demo.capacity import Level
from tidegate.simulate.like.model import Model


def curve(per_s: dict[int, float]) -> list[Level]:
    return [Level(workers, rate) for workers, rate in per_s.items()]


def test_as_many_as_there_are_processors_get_on_at_a_time() -> None:
    model = Model.fit(curve({1: 50.0, 2: 100.0, 3: 100.0, 4: 100.0}))
    assert (model.lambda_, model.sigma, model.kappa) == pytest.approx((50, 0, 0), abs=1e-9)
    assert model.processors == 2
    assert [model.per_s(workers) for workers in (1, 2, 3, 40)] == pytest.approx([50, 100, 100, 100])


def test_what_they_lose_by_each_other_is_found_below_the_processors() -> None:
    truth = Model(30.0, 0.05, 0.01, 8)
    levels = [Level(workers, truth.per_s(workers)) for workers in (1, 2, 4, 8, 12, 16)]
    model = Model.fit(levels)
    assert (model.lambda_, model.sigma, model.kappa) == pytest.approx((30, 0.05, 0.01))
    assert model.processors == 8


def test_a_database_that_only_gets_worse_is_a_law_to_the_end() -> None:
    truth = Model(3.0, 0.02, 5.55e-4, 1000)
    levels = [Level(workers, truth.per_s(workers)) for workers in (1, 2, 4, 8, 16, 32, 64)]
    model = Model.fit(levels)
    assert (model.lambda_, model.sigma, model.kappa) == pytest.approx((3, 0.02, 5.55e-4))
    assert model.processors == 64


def test_one_processor_does_not_get_more_done_by_two() -> None:
    model = Model.fit(curve({1: 50.0, 2: 50.0, 4: 50.0}))
    assert [model.per_s(workers) for workers in (1, 2, 4, 40)] == pytest.approx([50] * 4)


def test_two_levels_are_enough() -> None:
    model = Model.fit(curve({1: 54.0, 2: 108.0}))
    assert [model.per_s(workers) for workers in (1, 2, 40)] == pytest.approx([54, 108, 108])


def test_nothing_near_the_model_is_nearer() -> None:
    levels = curve({1: 50.0, 2: 104.0, 4: 171.0, 8: 260.0, 16: 301.0, 32: 250.0})
    model = Model.fit(levels)
    for factor in (0.97, 1.03):
        assert replace(model, lambda_=model.lambda_ * factor).distance(levels) > model.distance(levels)
        assert replace(model, sigma=model.sigma + factor - 1).distance(levels) > model.distance(levels)
    for processors in (2, 4, 8, 16):
        assert replace(model, processors=processors).distance(levels) > model.distance(levels)


def test_a_curve_that_no_model_is_near_says_so() -> None:
    with pytest.raises(ConfigError, match="throughput falls so steeply"):
        Model.fit(curve({2: 1e6, 3: 1e-6, 4: 1e-6}))


def test_noise_at_the_end_of_the_curve_says_nothing_of_forty() -> None:
    quiet = Model.fit(curve({1: 50.0, 2: 100.0, 3: 100.0, 4: 100.0})).per_s(40)
    noisy = Model.fit(curve({1: 50.0, 2: 100.0, 3: 100.0, 4: 95.0})).per_s(40)
    assert noisy == pytest.approx(quiet, rel=0.05)
