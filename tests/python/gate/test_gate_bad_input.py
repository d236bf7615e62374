"""What does not fit is refused with a plain error, and nothing changes (field faults D16, D17, D33, D35)."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import fractions
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from gatekit import admitted, assert_at_rest, in_thread, shown, together, until
from tidegate import ConfigError, Gate, Shed
from tidegate.testing import ManualClock

MAX = 2**31 - 1


class Index:
    """An integer that is no int, as numpy has them."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __index__(self) -> Any:
        return self.value

    def __repr__(self) -> str:
        return f"Index({self.value!r})"


class Evil:
    """Fails whatever it is asked."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return Evil
        raise LookupError(name)

    def __repr__(self) -> str:
        raise LookupError("repr")


OUT_OF_RANGE = [-1, -(2**31), -(2**63), -(2**64), MAX + 1, 2**32, 2**32 + 5, 2**53 + 1, 2**63, 2**64 + 1]
OUT_OF_RANGE += [10**400, -(10**5000), Index(-1), Index(2**32 + 5)]
NO_INT = [1.0, 1.5, float("nan"), float("inf"), True, False, "1", b"1", None, [], {}, 1j, object(), int]
NO_INT += [
    decimal.Decimal(1),
    fractions.Fraction(1),
    datetime.timedelta(1),
    Index("1"),
    Index(1.0),
    Index(1j),
]

Set = Callable[[Gate, Any], Any]

LIMITS: dict[str, Set] = {
    "Gate": lambda gate, value: Gate("db", value),
    "set_limit": lambda gate, value: gate.set_limit(value),
}
WEIGHTS: dict[str, Set] = {
    "admit": lambda gate, value: gate.admit(weight=value),
    "try_admit": lambda gate, value: gate.try_admit(weight=value),
    "guard": lambda gate, value: gate.guard(lambda: None, weight=value),
    "retry_after": lambda gate, value: gate.retry_after(weight=value),
}
TIMEOUTS: dict[str, Set] = {
    "drain": lambda gate, value: gate.drain(value),
    "drain_async": lambda gate, value: asyncio.run(draining(gate, value)),
}
PRIORITIES: dict[str, Set] = {
    "Gate": lambda gate, value: Gate("db", 1, default_priority=value),
    "admit": lambda gate, value: gate.admit(priority=value),
    "try_admit": lambda gate, value: gate.try_admit(priority=value),
    "guard": lambda gate, value: gate.guard(lambda: None, priority=value),
    "retry_after": lambda gate, value: gate.retry_after(priority=value),
}
CLOCKS: dict[str, Set] = {
    "ManualClock": lambda gate, value: ManualClock(value),
    "set": lambda gate, value: ManualClock().set(value),
    "advance": lambda gate, value: ManualClock().advance(value),
}


async def draining(gate: Gate, timeout: object) -> bool:
    return await gate.drain_async(timeout)


def calls(table: dict[str, Set], values: list[Any]) -> pytest.MarkDecorator:
    pairs = list(itertools.product(table, values))
    ids = [f"{name}({'Evil()' if type(value) is Evil else shown(value)})" for name, value in pairs]
    return pytest.mark.parametrize(
        ("call", "value"), [(table[name], value) for name, value in pairs], ids=ids
    )


def refuse(call: Set, value: Any, *errors: type[Exception]) -> None:
    gate = Gate("db", limit=5)
    held = gate.try_admit(weight=2)
    with pytest.raises(errors) as refused:
        call(gate, value)
    assert isinstance(refused.value, Exception), "never a BaseException such as PanicException"
    assert type(refused.value).__name__ != "PanicException"
    stats = gate.stats()
    assert (gate.limit, gate.in_flight, gate.closed) == (5, 2, False)
    assert (stats.generation, admitted(stats), gate.limit_history) == (0, 1, [])
    held.release()
    assert_at_rest(gate)


# --- D16: limits, weights ----------------------------------------------------------------------


@calls(LIMITS, OUT_OF_RANGE)
def test_d16_a_limit_out_of_range_is_a_config_error(call: Set, value: object) -> None:
    refuse(call, value, ConfigError)


@calls(LIMITS, NO_INT)
def test_d16_a_limit_that_is_no_int_is_a_type_error(call: Set, value: object) -> None:
    refuse(call, value, TypeError)


@calls(WEIGHTS, [0, *OUT_OF_RANGE])
def test_d16_a_weight_out_of_range_is_a_config_error(call: Set, value: object) -> None:
    refuse(call, value, ConfigError)


@calls(WEIGHTS, [value for value in NO_INT if value is not None])
def test_d16_a_weight_that_is_no_int_is_a_type_error(call: Set, value: object) -> None:
    refuse(call, value, TypeError)


def test_d16_the_message_names_value_and_rule() -> None:
    gate = Gate("db", limit=1)
    with pytest.raises(ConfigError, match=r"^limit must be a whole number from 0 to 2147483647, got -1$"):
        gate.set_limit(-1)
    with pytest.raises(ConfigError, match=r"^weight .* from 1 to 2147483647, got 4294967301$"):
        gate.admit(weight=2**32 + 5)
    with pytest.raises(ConfigError, match="got an int of 16610 bits"):
        gate.set_limit(10**5000)
    with pytest.raises(TypeError, match=r"^limit must be an int, got 1\.5 \(float\)$"):
        gate.set_limit(1.5)
    with pytest.raises(TypeError, match=r"^limit must be an int, got True \(bool\)$"):
        gate.set_limit(True)


def test_d16_the_documented_bounds_work() -> None:
    """Docs: limits go from 0, weights from 1, to 2**31 - 1."""
    gate = Gate("db", limit=MAX)
    with gate.admit(weight=MAX):
        assert gate.in_flight == MAX
        with pytest.raises(Shed) as refused, gate.admit(weight=MAX):
            pass
        assert refused.value.in_flight == MAX
        with pytest.raises(Shed), gate:
            pass
    with gate.admit(weight=MAX - 1), gate:
        assert gate.in_flight == MAX
    gate.set_limit(0)
    assert gate.limit == 0
    gate.set_limit(Index(3))
    assert gate.limit == 3
    with gate.admit(weight=Index(3)) as permit:
        assert permit.weight == 3
    assert_at_rest(gate)


@calls(CLOCKS, [-1, 2**64, 10**400, 1.5, "1", None, float("nan")])
def test_d16_clocks(call: Set, value: object) -> None:
    refuse(call, value, TypeError, OverflowError)


# --- D17: timeouts, and everything else --------------------------------------------------------


@calls(TIMEOUTS, [-1, -0.5, -1e-300, float("-inf"), float("nan"), -(10**400), decimal.Decimal("-0.1"), -1e30])
def test_d17_a_timeout_that_is_no_time_is_a_value_error(call: Set, value: object) -> None:
    refuse(call, value, ValueError)


NO_SECONDS = ["x", "1", b"1", True, False, [], {}, 1j, datetime.timedelta(seconds=1), object(), float]
NO_SECONDS += [decimal.Decimal("sNaN")]


@calls(TIMEOUTS, NO_SECONDS)
def test_d17_a_timeout_that_is_no_number_is_a_type_error(call: Set, value: object) -> None:
    refuse(call, value, TypeError)


FOR_EVER = [None, float("inf"), 1e30, 1e18, 10**400, 2**63, 2**64, decimal.Decimal("Infinity"), 1.7e308]
AT_ONCE = [0, 0.0, -0.0, 1e-12, 5e-324, decimal.Decimal("1e-9"), fractions.Fraction(1, 10**9)]


@calls(TIMEOUTS, [*FOR_EVER, *AT_ONCE, 1, 0.5])
def test_d17_an_empty_gate_is_drained_whatever_the_timeout(call: Set, value: object) -> None:
    """Docs: None and infinity wait for ever, and so does what no clock can count."""
    assert call(Gate("db", limit=1), value) is True


@calls(TIMEOUTS, AT_ONCE)
def test_d17_a_tiny_timeout_does_not_wait_for_ever(call: Set, value: object) -> None:
    gate = Gate("db", limit=1)
    with gate:
        assert call(gate, value) is False


@calls(TIMEOUTS, FOR_EVER)
def test_d17_for_ever_ends_when_the_last_one_leaves(call: Set, value: object) -> None:
    gate = Gate("db", limit=1)
    permit = gate.try_admit()
    answers = together(lambda: call(gate, value), lambda: until(lambda: gate.closed) or permit.release())
    assert answers[0] is True


@calls(PRIORITIES, ["", "x", "CRITICAL", "critical\0", "\ud800", "\uff23ritical", "critical" * 1_000])
def test_d17_an_unknown_priority_is_a_config_error(call: Set, value: object) -> None:
    refuse(call, value, ConfigError)


@calls(PRIORITIES, [0, 1, 4, -1, 2**32, 1.5, True, b"critical", [], ["critical"], object(), str])
def test_d17_a_priority_that_is_no_string_is_a_type_error(call: Set, value: object) -> None:
    """Also its number in the C ABI: Python has names."""
    refuse(call, value, TypeError)


class Items(dict):
    """A mapping with keys that cannot be hashed."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def items(self) -> Any:
        return self._items


EVERYTHING: dict[str, Set] = {
    **{f"limit of {name}": call for name, call in LIMITS.items()},
    **{f"weight of {name}": call for name, call in WEIGHTS.items()},
    **{f"priority of {name}": call for name, call in PRIORITIES.items()},
    **TIMEOUTS,
    "name": lambda gate, value: Gate(value, 1),
    "enforce": lambda gate, value: Gate("db", 1, enforce=value),
    "timing": lambda gate, value: Gate("db", 1, timing=value),
    "thresholds": lambda gate, value: Gate("db", 1, thresholds=value),
    "a threshold": lambda gate, value: Gate("db", 1, thresholds={"sheddable": value}),
    "a reserve": lambda gate, value: Gate("db", 1, thresholds={"sheddable": {"reserve": value}}),
    "a key of thresholds": lambda gate, value: Gate("db", 1, thresholds=Items([(value, 0.5)])),
    "outcomes": lambda gate, value: Gate("db", 1, outcomes=value),
    "an outcome": lambda gate, value: Gate("db", 1, outcomes={KeyError: value}),
    "clock": lambda gate, value: Gate("db", 1, clock=value),
    "set_thresholds": lambda gate, value: gate.set_thresholds(value),
    "set_enforce": lambda gate, value: gate.set_enforce(value),
    "cause": lambda gate, value: gate.set_limit(5, cause=value),
    "guard": lambda gate, value: gate.guard(value),
    "release": lambda gate, value: gate.try_admit().release(value),
    "latency": lambda gate, value: gate.stats().latency(value, "critical"),
    "priority of latency": lambda gate, value: gate.stats().latency(0.5, value),
}


@calls({name: call for name, call in EVERYTHING.items() if name != "release"}, [Evil(), 1j])
def test_d17_nothing_panics_at_objects_that_fail_themselves(call: Set, value: object) -> None:
    refuse(call, value, TypeError, ValueError, LookupError)


FUZZ = [
    None,
    0,
    1,
    -1,
    2**64,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "critical",
    "success",
    "\ud800",
    "a\0b",
]
FUZZ += [b"", True, (), [], {}, {1: 2}, object(), type, lambda: None, Index(2), Index(None), ValueError]


@pytest.mark.parametrize("name", EVERYTHING)
@pytest.mark.filterwarnings("ignore:a permit of gate 'db' was collected:ResourceWarning")
def test_d17_every_argument_takes_it_or_refuses_it_with_a_plain_error(name: str) -> None:
    for value in FUZZ:
        gate = Gate("db", limit=5)
        before = gate.thresholds
        try:
            EVERYTHING[name](gate, value)
        except (TypeError, ValueError, OverflowError):
            assert (gate.limit, gate.thresholds, gate.enforce) == (5, before, True)
        assert gate.in_flight == 0


def test_d17_drain_is_refused_before_it_closes() -> None:
    gate = Gate("db", limit=1)
    for bad in (-1, float("nan"), "x"):
        with pytest.raises((ValueError, TypeError)):
            in_thread(lambda bad=bad: gate.drain(timeout=bad))
        with pytest.raises((ValueError, TypeError)):
            gate.drain_async(bad)  # told where it is called, not where it is awaited
    assert not gate.closed


# --- D33: degenerate configurations ------------------------------------------------------------


def test_d33_a_limit_of_zero_refuses_everybody_and_one_lets_one_in() -> None:
    gate = Gate("db", limit=0)
    for priority in ("critical_plus", "sheddable"):
        assert gate.try_admit(priority=priority) is None
        assert gate.retry_after(priority=priority) == float("inf")
    gate.set_limit(1)
    assert gate.retry_after() == 0.0
    with gate, pytest.raises(Shed), gate:
        pass
    assert_at_rest(gate)


def test_d33_a_weight_above_the_limit_is_refused_at_once_and_changes_nothing() -> None:
    gate = Gate("db", limit=5)
    with pytest.raises(Shed) as refused, gate.admit(weight=6):
        pass
    assert (refused.value.reason, refused.value.retry_after) == ("limit", float("inf"))
    assert gate.try_admit(weight=MAX) is None
    with gate.admit(weight=5):
        gate.set_limit(4)
        assert gate.try_admit(weight=5) is None
    assert gate.try_admit(weight=5) is None, "too heavy from now on"
    gate.set_limit(5)
    with gate.admit(weight=5):
        pass
    assert_at_rest(gate)


def test_d33_weights_near_the_maximum_neither_wrap_nor_panic() -> None:
    gate = Gate("db", limit=MAX)
    with gate.admit(weight=MAX - 1), gate.admit(weight=1):
        for weight in (1, 2, MAX - 1, MAX):
            assert gate.try_admit(weight=weight) is None
            assert gate.try_admit(weight=weight, priority="sheddable") is None
        assert gate.in_flight == MAX
    gate.set_enforce(False)
    with gate.admit(weight=MAX), gate.admit(weight=MAX), gate.admit(weight=MAX):
        assert gate.in_flight == MAX
    assert_at_rest(gate)


def test_d33_a_priority_whose_threshold_is_zero_never_enters() -> None:
    gate = Gate("db", limit=5, thresholds={"sheddable": 0})
    assert gate.try_admit(priority="sheddable") is None
    assert gate.retry_after(priority="sheddable") == float("inf")
    assert gate.stats().shed["sheddable"]["priority"] == 1


# --- D35: names --------------------------------------------------------------------------------

GOOD_NAMES = [
    "db", "a", "x" * 255, "é" * 127, "🌊", "e\u0301", "\u0301", " ", "/", "..", "../../etc/passwd", "a b",
    "'", '"', "\\", "%s", "{}", "x_total", "\u202e", "\u200b", "\ufeff", "\U0001d555", "名前",
    "\uffff", "\U0010ffff",
]  # fmt: skip
BAD_NAMES = [
    "", "\0", "a\0b", "\0a", "a\n", "\r", "\t", "\x1b[31m", "\x7f", "\x85", "x" * 256, "é" * 128, "🌊" * 64,
    "\ud800", "db\udfff",
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD_NAMES, ids=shown)
def test_d35_a_name_comes_back_as_it_went_in(name: str) -> None:
    gate = Gate(name, limit=0)
    assert gate.name == name
    assert repr(gate) == f"<Gate {name!r}: 0 of 0 in flight>"
    with pytest.raises(Shed) as refused, gate:
        pass
    assert refused.value.gate == name
    assert str(refused.value).startswith(f"gate '{name}' full")


@pytest.mark.parametrize("name", BAD_NAMES, ids=shown)
def test_d35_control_characters_and_what_is_no_utf_8_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="name must be 1 to 255 bytes of UTF-8 without control characters"):
        Gate(name, limit=1)


@pytest.mark.parametrize(
    "name", [None, 1, b"db", ["db"], object()], ids=["None", "1", "bytes", "list", "object"]
)
def test_d35_a_name_is_a_string(name: object) -> None:
    with pytest.raises(TypeError, match="name must be a str"):
        Gate(name, limit=1)


def test_d35_a_subclass_of_str_is_a_name() -> None:
    class Name(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise LookupError

    assert Gate(Name("db"), limit=1).name == "db"


def test_d35_names_that_differ_in_normalisation_are_different_names() -> None:
    composed, decomposed = Gate("\u00e9", limit=1), Gate("e\u0301", limit=1)
    assert composed.name != decomposed.name
