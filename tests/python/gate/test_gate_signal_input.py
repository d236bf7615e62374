"""What a signal is given: defaults, and what is refused."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest
from tidegate import ConfigError, Gate, Signal

KINDS = ["cpu", "memory", "psi-cpu", "psi-memory", "psi-io", "errors"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_by_its_name(kind: str) -> None:
    signal = Signal(kind)
    assert signal.name == kind
    assert repr(signal) == f'<Signal "{kind}": measured>'
    Gate("db", 1, signals=[signal])


def test_other_names_are_for_functions_and_for_what_is_pushed() -> None:
    assert repr(Signal("db")) == '<Signal "db": pushed in>'
    assert repr(Signal("db", function=lambda: 0.5)) == '<Signal "db": by a function>'


@pytest.mark.parametrize(
    ("name", "arguments", "error", "says"),
    [
        (3, {}, TypeError, "name must be a str, got 3"),
        ("", {}, ConfigError, "name must be 1 to 255 bytes"),
        ("a\0b", {}, ConfigError, "name must be 1 to 255 bytes"),
        ("x" * 256, {}, ConfigError, "name must be 1 to 255 bytes"),
        ("\ud800", {}, ConfigError, "name must be 1 to 255 bytes"),
        ("CPU", {}, ConfigError, 'not so close to "cpu", got "CPU"'),
        ("psi_io", {}, ConfigError, 'not so close to "psi-io", got "psi_io"'),
        ("Latency", {}, ConfigError, 'not so close to "latency"'),
        ("cpu", {"function": print}, ConfigError, 'the signal "cpu" is measured here'),
        ("db", {"function": 3}, TypeError, "function must be a callable, got 3"),
        ("db", {"good_for": 1.0}, ConfigError, "good_for goes with a function"),
        ("cpu", {"good_for": 1.0}, ConfigError, "good_for goes with a function"),
        (
            "db",
            {"enter": 0.5},
            ConfigError,
            "0 <= leave < enter <= full <= 1, got leave 0.7, enter 0.5, full 1",
        ),
        ("db", {"leave": -0.1}, ConfigError, "0 <= leave"),
        ("db", {"full": 1.1}, ConfigError, "full 1.1"),
        ("db", {"enter": float("nan")}, ConfigError, "enter NaN"),
        ("db", {"enter": 85}, ConfigError, "enter 85"),
        ("db", {"enter": True}, TypeError, "enter must be a number, got True"),
        ("db", {"leave": "0.5"}, TypeError, "leave must be a number"),
        ("db", {"enter_for": -1}, ConfigError, "enter_for must be a number of seconds from 0, got -1"),
        ("db", {"leave_for": float("nan")}, ConfigError, "leave_for must be a number of seconds from 0"),
        ("db", {"dwell": float("inf")}, ConfigError, "dwell must be a number of seconds from 0"),
        ("db", {"dwell": 1e300}, ConfigError, r"dwell must be less than 2\*\*64 seconds, got 1e300"),
        ("db", {"ramp": "20s"}, TypeError, "ramp must be a number of seconds, got '20s'"),
        (
            "db",
            {"function": print, "good_for": -1},
            ConfigError,
            "good_for must be a number of seconds from 0",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused(
    name: Any, arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Signal(name, **arguments)


@pytest.mark.parametrize(
    ("signals", "error", "says"),
    [
        (3, TypeError, "signals must be an iterable of Signal, got 3"),
        (["cpu"], TypeError, "signals must be an iterable of Signal"),
        ("cpu", TypeError, "signals must be an iterable of Signal"),
        (Signal("cpu"), TypeError, "signals must be an iterable of Signal"),
        ([Signal("a"), Signal("a")], ConfigError, 'a name of its own, got "a" twice'),
        ([Signal("latency")], ConfigError, "objective"),
    ],
)
def test_signals_that_do_not_fit_are_refused(signals: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Gate("db", 1, signals=signals)


def test_a_signal_is_one_of_its_process() -> None:
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            copied(Signal("db"))


def test_a_function_that_knows_its_gate_goes_with_it() -> None:
    class Function:
        gate: Gate

        def __call__(self) -> float:
            return self.gate.in_flight / self.gate.limit

    function = Function()
    function.gate = Gate("db", 1, signals=[Signal("db", function=function)])
    with function.gate:
        pass
    forgotten = weakref.ref(function)
    del function
    gc.collect()
    assert forgotten() is None
