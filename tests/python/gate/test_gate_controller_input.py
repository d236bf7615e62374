"""What a controller and its bounds are given: defaults, and what is refused (field faults D16, D17, D33)."""

from __future__ import annotations

import decimal
import fractions
import re
from typing import Any

import pytest
from gatekit import shown
from tidegate import ConfigError, Gate

MAX = 2**31 - 1


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        ({"controller": "goodput"}, 32),  # halfway, in factors, between 1 and 1000
        ({"controller": "goodput", "min": 4, "max": 200}, 28),
        ({"controller": "aimd", "limit": 20}, 20),
        ({"controller": "vegas", "limit": 20, "prior": 29}, 29),
        ({"controller": "gradient2", "limit": 20, "ceiling": 10}, 10),
        ({"controller": "fixed", "limit": 20}, 20),
        ({"controller": "goodput", "min": 2_000}, 2_000),
        ({"controller": "goodput", "max": MAX, "prior": MAX}, MAX),
        ({"controller": "goodput", "objective": 2.0}, 32),
        ({"controller": "goodput", "objective": decimal.Decimal("0.5")}, 32),
        ({"controller": "goodput", "objective": fractions.Fraction(1, 3)}, 32),
        ({"limit": 20, "objective": 1}, 20),
        ({"limit": 20, "signals": []}, 20),
    ],
)
def test_what_is_not_said_has_a_default(arguments: dict[str, Any], limit: int) -> None:
    assert Gate("db", **arguments).limit == limit


NUMBER = "must be a whole number from 1 to 2147483647"


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({}, TypeError, "a gate needs a limit, or a controller that finds one"),
        ({"objective": 2.0}, TypeError, "a gate needs a limit, or a controller that finds one"),
        ({"controller": "best"}, ConfigError, 'one of fixed, aimd, gradient2, vegas, goodput, got "best"'),
        ({"controller": "Goodput"}, ConfigError, 'got "Goodput"'),
        ({"controller": ""}, ConfigError, "controller must be one of"),
        ({"controller": "\ud800"}, ConfigError, "controller must be one of"),
        ({"controller": 1}, TypeError, "controller must be a str, got 1"),
        ({"controller": b"aimd"}, TypeError, "controller must be a str"),
        ({"limit": 20, "min": 4}, ConfigError, "min needs a controller, got 4 without one"),
        ({"limit": 20, "max": 4}, ConfigError, "max needs a controller"),
        ({"limit": 20, "prior": 4}, ConfigError, "prior needs a controller"),
        ({"limit": 20, "ceiling": 4}, ConfigError, "ceiling needs a controller"),
        ({"controller": "aimd", "limit": 0}, ConfigError, r"must be from min \(1\) to max \(1000\), got 0"),
        ({"controller": "aimd", "limit": 1_001}, ConfigError, r"from min \(1\) to max \(1000\), got 1001"),
        ({"controller": "aimd", "limit": -1}, ConfigError, "limit must be a whole number from 0"),
        (
            {"controller": "aimd", "min": 0},
            ConfigError,
            r"min must be a whole number from 1 to max \(1000\), got 0",
        ),
        ({"controller": "aimd", "min": 5, "max": 4}, ConfigError, r"from 1 to max \(4\), got 5"),
        ({"controller": "aimd", "min": 5, "limit": 4}, ConfigError, r"from min \(5\) to max \(1000\), got 4"),
        (
            {"controller": "aimd", "min": 5, "ceiling": 4},
            ConfigError,
            r"ceiling must be at least min \(5\), got 4",
        ),
        ({"controller": "aimd", "max": MAX + 1}, ConfigError, f"max {NUMBER}, got 2147483648"),
        # Of the default max nobody has said anything.
        ({"controller": "aimd", "min": MAX + 1}, ConfigError, f"min {NUMBER}, got 2147483648"),
        ({"controller": "aimd", "ceiling": MAX + 1}, ConfigError, f"ceiling {NUMBER}, got 2147483648"),
        ({"controller": "aimd", "prior": MAX + 1}, ConfigError, f"prior {NUMBER}, got 2147483648"),
        ({"controller": "aimd", "max": 10**30}, ConfigError, f"max {NUMBER}, got 1000000"),
        ({"controller": "aimd", "prior": -1}, ConfigError, f"prior {NUMBER}, got -1"),
        ({"controller": "aimd", "prior": 1.0}, TypeError, "prior must be an int, got 1.0"),
        ({"controller": "aimd", "min": True}, TypeError, "min must be an int, got True"),
        ({"controller": "aimd", "ceiling": "4"}, TypeError, "ceiling must be an int, got '4'"),
    ],
)
def test_what_breaks_a_rule_is_refused(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Gate("db", **arguments)


@pytest.mark.parametrize(
    "value", [0, 0.0, -0.0, -1, float("nan"), float("inf"), 10**400, -(10**400)], ids=shown
)
def test_an_objective_is_a_time(value: object) -> None:
    with pytest.raises(ConfigError, match="objective must be a number of seconds above 0, got"):
        Gate("db", 20, objective=value)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (5e-324, "at least a nanosecond, got 5e-324"),
        (4e-10, "at least a nanosecond, got 4e-10"),
        (2.0**64, "less than 2**64 seconds, got 1.8446744073709552e19"),
        (1e300, "less than 2**64 seconds, got 1e300"),
    ],
)
def test_an_objective_that_no_clock_can_count_breaks_another_rule(value: float, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"objective must be {says}")):
        Gate("db", 20, objective=value)
    assert Gate("db", 20, objective=1e-9).objective == 1e-9


@pytest.mark.parametrize("value", ["2s", "2", True, [], 1j, object()], ids=shown)
def test_an_objective_is_a_number(value: object) -> None:
    with pytest.raises(TypeError, match="objective must be a number of seconds, got"):
        Gate("db", 20, objective=value)
