"""How full the gate may be for a priority still to enter."""

from __future__ import annotations

from collections import UserDict
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import pytest
from gatekit import shown
from tidegate import ConfigError, Gate, Priority


def thresholds(limit: int, **given: object) -> list[int]:
    return list(Gate("db", limit, thresholds=given).thresholds.values())


def test_fractions_of_the_limit() -> None:
    assert thresholds(40, sheddable_plus=0.5, sheddable=0.25) == [40, 40, 20, 10]
    assert thresholds(40, critical=0.9, sheddable_plus=0.9, sheddable=0) == [40, 36, 36, 0]
    assert thresholds(40, critical_plus=1, critical=1.0) == [40, 40, 36, 30]


def test_a_fraction_is_rounded_up_so_that_a_share_never_becomes_nothing() -> None:
    assert thresholds(1, sheddable=0.000001) == [1, 1, 1, 1]
    assert thresholds(3, sheddable=0.34) == [3, 3, 3, 2]
    assert thresholds(10, sheddable=0.1) == [10, 10, 9, 1]
    assert thresholds(2**31 - 1, sheddable=0.5)[-1] == 2**30


def test_d33_below_a_limit_of_ten_the_default_reserve_of_sheddable_plus_is_empty_as_documented() -> None:
    """Docs: below a limit of 10 the default reserve of sheddable_plus is empty."""
    assert thresholds(9) == [9, 9, 9, 7]
    assert thresholds(10) == [10, 10, 9, 8]
    assert thresholds(0) == [0, 0, 0, 0]


def test_reserves() -> None:
    assert thresholds(20, sheddable={"reserve": 5}) == [20, 20, 18, 15]
    assert thresholds(20, sheddable_plus={"reserve": 4}, sheddable={"reserve": 20}) == [20, 20, 16, 0]
    assert thresholds(20, sheddable={"reserve": 2**31 - 1}) == [20, 20, 18, 0]


def test_a_reserve_stays_as_large_as_the_limit_moves_a_fraction_does_not() -> None:
    gate = Gate("db", 20, thresholds={"sheddable_plus": 0.5, "sheddable": {"reserve": 12}})
    assert list(gate.thresholds.values()) == [20, 20, 10, 8]
    gate.set_limit(100)
    assert list(gate.thresholds.values()) == [100, 100, 50, 50]
    gate.set_limit(14)
    assert list(gate.thresholds.values()) == [14, 14, 7, 2]
    gate.set_limit(4)
    assert list(gate.thresholds.values()) == [4, 4, 2, 0]


def test_what_is_not_named_has_its_default_lowered_to_what_stands_above_it() -> None:
    assert thresholds(100, sheddable=0.1) == [100, 100, 90, 10]
    assert thresholds(100, sheddable_plus=0.5) == [100, 100, 50, 50]
    assert thresholds(100, critical=0.3) == [100, 30, 30, 30]


def test_any_mapping_will_do() -> None:
    for mapping in ({Priority.SHEDDABLE: 0.5}, MappingProxyType({"sheddable": 0.5}), UserDict(sheddable=0.5)):
        assert Gate("db", 10, thresholds=mapping).thresholds[Priority.SHEDDABLE] == 5
    assert Gate("db", 10, thresholds={}).thresholds == Gate("db", 10).thresholds


def test_the_reading_is_a_copy() -> None:
    gate = Gate("db", 10)
    gate.thresholds[Priority.SHEDDABLE] = 10
    assert gate.thresholds[Priority.SHEDDABLE] == 8


RISING = [
    {"sheddable_plus": 0.5, "sheddable": 0.6},
    {"critical": 0.5, "sheddable": 0.500001},
    {"sheddable_plus": {"reserve": 5}, "sheddable": {"reserve": 4}},
    {"sheddable_plus": {"reserve": 5}, "sheddable": 0.9},
    {"sheddable_plus": 0.5, "sheddable": {"reserve": 1}},
]


@pytest.mark.parametrize("rising", RISING)
def test_thresholds_must_not_rise_as_importance_falls(rising: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="thresholds must not rise as importance falls: sheddable "):
        Gate("db", 10, thresholds=rising)
    gate = Gate("db", 10)
    before = gate.thresholds
    with pytest.raises(ConfigError, match="must not rise"):
        gate.set_thresholds(rising)
    assert gate.thresholds == before


def test_a_rise_is_refused_also_where_rounding_would_hide_it() -> None:
    with pytest.raises(ConfigError, match="must not rise"):
        thresholds(1, sheddable_plus=0.5, sheddable=0.6)


@pytest.mark.parametrize("top", [0.99, 0, {"reserve": 1}])
def test_the_top_threshold_is_the_limit(top: object) -> None:
    with pytest.raises(ConfigError, match="critical_plus is the limit itself"):
        thresholds(10, critical_plus=top)


WRONG_VALUE = [-0.1, -1, 1.000001, 2, 10**400, float("nan"), float("inf"), float("-inf")]
WRONG_TYPE = [True, None, "0.5", b"1", [0.5], Decimal("0.5"), Fraction(1, 2), 1j, {}, {"reserved": 1}]
WRONG_TYPE += [{"reserve": 1, "of": 2}, {"reserve": 0.5}, {"reserve": True}, {"reserve": None}]
WRONG_RESERVE = [{"reserve": -1}, {"reserve": 2**31}, {"reserve": 2**32 + 5}, {"reserve": 10**5000}]


@pytest.mark.parametrize("share", [*WRONG_VALUE, *WRONG_RESERVE], ids=shown)
def test_d16_a_threshold_out_of_range_is_a_config_error(share: object) -> None:
    assert_refused(ConfigError, share)


@pytest.mark.parametrize("share", WRONG_TYPE, ids=repr)
def test_d16_a_threshold_of_a_wrong_type_is_a_type_error(share: object) -> None:
    assert_refused(TypeError, share)


def assert_refused(error: type[Exception], share: object) -> None:
    with pytest.raises(error):
        thresholds(10, sheddable=share)
    gate = Gate("db", 10, thresholds={"sheddable": 0.5})
    with pytest.raises(error):
        gate.set_thresholds({"sheddable": share})
    assert gate.thresholds[Priority.SHEDDABLE] == 5
    assert gate.stats().generation == 0


@pytest.mark.parametrize("mapping", [0.5, "sheddable", [("sheddable", 0.5)], {1: 0.5}, {None: 1}, {"x": 1}])
def test_d16_what_is_no_mapping_from_priorities_is_refused(mapping: object) -> None:
    with pytest.raises((TypeError, ConfigError)):
        Gate("db", 10, thresholds=mapping)
    gate = Gate("db", 10)
    with pytest.raises((TypeError, ConfigError)):
        gate.set_thresholds(mapping)
    assert gate.stats().generation == 0


def test_errors_of_the_mapping_itself_come_through() -> None:
    class Broken(UserDict):
        def items(self) -> object:
            raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        Gate("db", 10, thresholds=Broken())
