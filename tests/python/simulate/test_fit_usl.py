"""The native fit of the Universal Scalability Law. Its properties are tested in Rust."""

from __future__ import annotations

import math

import pytest
from tidegate import ConfigError
from tidegate._native import fit_usl


def throughput(n: float) -> float:
    return 3 * n / (1 + 0.02 * (n - 1) + 5.55e-4 * n * (n - 1))


def test_the_law_of_the_points_is_found() -> None:
    fit = fit_usl([(n, throughput(n)) for n in (1, 2, 4, 8, 16, 32, 64)])
    assert (fit.lambda_, fit.sigma, fit.kappa) == pytest.approx((3, 0.02, 5.55e-4))
    assert fit.residuals == pytest.approx([0] * 7, abs=1e-9)
    assert fit.throughput(42) == pytest.approx(throughput(42))
    assert fit.best_concurrency == pytest.approx(42, rel=1e-3)
    assert fit.best_throughput == pytest.approx(45.4, rel=1e-3)


def test_a_weight_counts() -> None:
    points = [(1, 50.0, 1.0), (2, 100.0, 1.0), (4, 100.0, 1e9)]
    assert (
        abs(fit_usl(points).residuals[2]) < 1e-9 < abs(fit_usl([(n, x) for n, x, _ in points]).residuals[2])
    )


def test_without_kappa_two_concurrencies_are_enough() -> None:
    fit = fit_usl([(1, 50.0), (2, 80.0)], kappa=False)
    assert (fit.lambda_, fit.sigma, fit.kappa) == pytest.approx((50, 0.25, 0))
    assert fit.best_concurrency is None
    assert fit.best_throughput == pytest.approx(200)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([(1, 2.0), (2, 3.0)], "a fit needs throughput at 3 different concurrencies at least, got 2"),
        ([(1, 2.0), (2, math.nan)], "point 2: throughput must be a positive number"),
        ([(0, 2.0)], "point 1: concurrency must be a positive number"),
        ([(1, 2.0, -1.0)], "point 1: weight must be 0 or a positive number"),
        ([(2, 100.0), (3, 3.0), (4, 0.001)], "throughput falls so steeply"),
    ],
)
def test_what_cannot_be_fitted_says_why(points: list[tuple[float, float]], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        fit_usl(points)


@pytest.mark.parametrize("points", [None, 1, [1], [(1,)], [("1", 2)], [(1, 2, 3, 4)]])
def test_what_are_no_points_is_a_type_error(points: object) -> None:
    with pytest.raises(TypeError):
        fit_usl(points)  # type: ignore[arg-type]
