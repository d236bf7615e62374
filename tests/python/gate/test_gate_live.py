"""Changing a gate while it is in use."""

from __future__ import annotations

import random
import threading
import time
from functools import partial

import pytest
from gatekit import assert_at_rest, together
from tidegate import ConfigError, Gate, LimitChange, Priority
from tidegate.testing import ManualClock


def test_a_new_limit_holds_from_the_next_request_on(gate: Gate) -> None:
    with gate:
        assert gate.try_admit() is None
        gate.set_limit(2)
        assert gate.limit == 2
        with gate:
            assert gate.try_admit() is None
    assert_at_rest(gate)


def test_d03_below_what_is_inside_nothing_enters_until_enough_have_left() -> None:
    gate = Gate("db", limit=2)
    first, second = gate.try_admit(), gate.try_admit()
    for limit in (1, 0, 1, 2):
        gate.set_limit(limit)
        assert gate.try_admit() is None
        assert gate.in_flight == 2, "lowering a limit takes nobody's permit away"
    gate.set_limit(3)
    third = gate.try_admit()
    assert third is not None
    assert gate.try_admit() is None, "raised by one: exactly one more"

    gate.set_limit(1)
    first.release()
    second.release()
    assert gate.try_admit() is None
    third.release()
    assert_at_rest(gate)


def test_d03_lowering_does_not_wait_for_stuck_holders() -> None:
    gate = Gate("db", limit=10)
    held = [gate.try_admit() for _ in range(10)]
    took = []
    for _ in range(5):
        start = time.perf_counter()
        gate.set_limit(5)
        took.append(time.perf_counter() - start)
    assert min(took) < 0.010, took
    for permit in held:
        permit.release()
    assert_at_rest(gate)


def test_d03_a_limit_that_flips_under_load_loses_and_makes_no_room(seed: int, restless: None) -> None:
    gate = Gate("db", limit=100)
    done = threading.Event()

    def flip() -> None:
        for step in range(20_000):
            gate.set_limit(1 if step % 2 else 100)
        done.set()

    def use(number: int) -> None:
        rng = random.Random(seed + number)
        while not done.is_set():
            permit = gate.try_admit(priority=rng.choice(list(Priority)))
            if permit is not None:
                permit.release()

    together(flip, *(partial(use, number) for number in range(32)))
    gate.set_limit(7)
    assert gate.stats().high_water <= 100
    assert_at_rest(gate)


def test_the_limit_once_lowered_is_never_exceeded_again(restless: None) -> None:
    """Once set_limit has returned nobody rests on the old limit, not even one who was half inside."""
    gate = Gate("db", limit=8)
    done = threading.Event()

    def use() -> None:
        while not done.is_set():
            permit = gate.try_admit()
            if permit is not None:
                permit.release()

    def lower() -> None:
        try:
            for _ in range(500):
                gate.set_limit(8)
                gate.set_limit(0)
                inside = gate.in_flight
                for _ in range(20):
                    before, inside = inside, gate.in_flight
                    assert inside <= before, "somebody entered under a limit of 0"
        finally:
            done.set()

    together(lower, use, use)


def test_thresholds_change_live() -> None:
    gate = Gate("db", limit=10)
    with gate.admit(weight=5):
        gate.set_thresholds({"sheddable": 0.5})
        assert gate.try_admit(priority="sheddable") is None
        gate.set_thresholds({"sheddable": {"reserve": 4}})
        gate.try_admit(priority="sheddable").release()
        gate.set_thresholds({})  # what is not named has its default
        assert list(gate.thresholds.values()) == [10, 10, 9, 8]
    assert_at_rest(gate)


def test_enforcement_is_switched_live(gate: Gate) -> None:
    assert gate.enforce is True
    with gate:
        gate.set_enforce(False)
        assert gate.enforce is False
        gate.try_admit().release()
        gate.set_enforce(True)
        assert gate.try_admit() is None
    assert_at_rest(gate)


@pytest.mark.parametrize("flag", [None, 0, 1, "yes", []])
def test_enforce_is_a_bool(gate: Gate, flag: object) -> None:
    with pytest.raises(TypeError):
        gate.set_enforce(flag)
    with pytest.raises(TypeError):
        Gate("db", 1, enforce=flag)
    with pytest.raises(TypeError):
        Gate("db", 1, timing=flag)
    assert gate.enforce is True


def test_each_change_is_a_generation(gate: Gate) -> None:
    changes = [
        lambda: gate.set_limit(2),
        lambda: gate.set_limit(2),
        lambda: gate.set_thresholds({}),
        lambda: gate.set_enforce(False),
    ]
    for n, change in enumerate(changes, start=1):
        change()
        assert gate.stats().generation == n


def test_the_history_tells_when_what_and_why() -> None:
    clock = ManualClock()
    gate = Gate("db", limit=10, clock=clock)
    assert gate.limit_history == []
    clock.advance(2_500_000_000)
    gate.set_limit(20, cause="deploy")
    clock.advance(1)
    gate.set_limit(15)
    first, second = gate.limit_history
    assert isinstance(first, LimitChange)
    assert (first.at, first.previous, first.limit, first.cause) == (2.5, 10, 20, "deploy")
    assert (second.previous, second.limit, second.cause) == (20, 15, None)
    assert repr(first) == "<LimitChange at 2.500 s: 10 -> 20 (deploy)>"
    with pytest.raises(AttributeError):
        first.limit = 3


def test_the_history_keeps_the_last_sixty_four() -> None:
    gate = Gate("db", limit=1)
    for limit in range(100):
        gate.set_limit(limit)
    assert [change.limit for change in gate.limit_history] == list(range(36, 100))


def test_what_was_refused_is_not_in_the_history(gate: Gate) -> None:
    with pytest.raises(ConfigError):
        gate.set_limit(-1, cause="typo")
    for cause in (3, b"deploy", "\ud800"):
        with pytest.raises((TypeError, ValueError)):
            gate.set_limit(2, cause=cause)
    assert (gate.limit, gate.limit_history, gate.stats().generation) == (1, [], 0)
    for cause in ("a\0b", "", "naïve 🌊", "x" * 10_000):
        gate.set_limit(2, cause=cause)
        assert gate.limit_history[-1].cause == cause


def test_properties_are_read_only(gate: Gate) -> None:
    for name in ("name", "limit", "in_flight", "thresholds", "enforce", "closed", "default_priority", "x"):
        with pytest.raises(AttributeError):
            setattr(gate, name, getattr(gate, name, None))
