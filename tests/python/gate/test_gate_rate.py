"""Rates: ``Gate(rate="150/min", burst=10)``. The numbers are in the vectors; here is what only Python has."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from typing import Any

import pytest
from tidegate import ConfigError, Event, Gate, Reason, Shed
from tidegate.testing import ManualClock

SECOND = 1_000_000_000


def refused_by(gate: Gate, **asked: Any) -> Shed:
    with pytest.raises(Shed) as refused, gate.admit(**asked):
        pytest.fail("admitted")
    return refused.value


def test_a_rate_is_read_only_and_set_by_its_setter() -> None:
    gate = Gate("db", limit=20, rate="150/min")
    assert (gate.rate, gate.burst) == ("150/min", 3)
    gate.set_rate("7/h", burst=10, cause="deploy")
    assert (gate.rate, gate.burst) == ("7/h", 10)
    gate.set_rate(None)
    assert (gate.rate, gate.burst) == (None, None)
    assert (Gate("db", limit=20).rate, Gate("db", limit=20).burst) == (None, None)
    with pytest.raises(AttributeError):
        gate.rate = "1/s"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        gate.burst = 1  # type: ignore[misc]


class Five:
    def __index__(self) -> int:
        return 5


@pytest.mark.parametrize(
    "rate", ["", "150", "150/d", "0.5/s", "-1/s", "+1/s", "nan/s", "1/s ", "10000000001/s", "\ud800"]
)
def test_what_is_no_rate(rate: str) -> None:
    gate = Gate("db", limit=20, rate="1/s")
    rule = r"rate must be COUNT/UNIT, a whole number from 0 to 10000000000 and s, min or h"
    with pytest.raises(ConfigError, match=rule):
        Gate("db", limit=20, rate=rate)
    with pytest.raises(ConfigError, match=rule):
        gate.set_rate(rate)
    assert (gate.rate, gate.burst, gate.stats().generation) == ("1/s", 1, 0)


@pytest.mark.parametrize("rate", [150, 2.5, True, b"1/s", ["1/s"], math.nan])
def test_a_rate_is_a_str(rate: Any) -> None:
    with pytest.raises(TypeError, match="rate must be a str"):
        Gate("db", limit=20, rate=rate)


@pytest.mark.parametrize("burst", [0, -1, 2**31, 2**63, 2**64 + 5, pytest.param(10**5000, id="huge")])
def test_a_burst_outside_its_rule(burst: int) -> None:
    gate = Gate("db", limit=20, rate="1/s")
    for make in (lambda: Gate("db", 1, rate="1/s", burst=burst), lambda: gate.set_rate("1/s", burst=burst)):
        with pytest.raises(ConfigError, match=r"burst must be a whole number from 1 to 2147483647, got"):
            make()
    with pytest.raises(ConfigError, match="burst needs a rate"):
        Gate("db", limit=20, burst=burst)
    assert (gate.burst, gate.stats().generation) == (1, 0)


@pytest.mark.parametrize("burst", [1.5, True, "3", math.inf])
def test_a_burst_is_an_int(burst: Any) -> None:
    with pytest.raises(TypeError, match="burst must be an int"):
        Gate("db", limit=20, rate="1/s", burst=burst)
    assert Gate("db", limit=20, rate="1/s", burst=Five()).burst == 5


def test_d12_a_full_gate_uses_nothing_of_the_rate_and_a_rate_nothing_of_the_limit() -> None:
    gate = Gate("db", limit=1, rate="1/h", burst=3)
    with gate:
        for _ in range(1_000):
            assert gate.try_admit() is None
    with gate, pytest.raises(Shed):
        gate.__enter__()
    with gate:
        pass
    assert gate.try_admit() is None, "three of three"
    assert gate.stats().shed["critical"] == {**gate.stats().shed["critical"], "limit": 1_001, "rate": 1}
    gate = Gate("db", limit=10, rate="0/s", burst=3, clock=ManualClock())
    for _ in range(1_000):
        if permit := gate.try_admit():
            permit.release()
    stats = gate.stats()
    assert (stats.in_flight, stats.high_water, stats.admitted["critical"]) == (0, 1, 3)
    assert stats.shed["critical"]["rate"] == 997


def test_every_way_in_has_the_rate() -> None:
    clock = ManualClock()
    gate = Gate("db", limit=10, rate="1/s", clock=clock)

    @gate.guard
    def guarded() -> int:
        return 1

    def entered() -> None:
        with gate:
            pass

    def admitted() -> None:
        with gate.admit():
            pass

    for enter in (guarded, entered, admitted):
        enter()
        with pytest.raises(Shed) as refused:
            enter()
        assert refused.value.reason is Reason.RATE
        clock.advance(SECOND)
    assert gate.stats().in_flight == 0


def test_the_message_says_the_rate() -> None:
    gate = Gate("db", limit=20, rate="150/min", burst=10, clock=ManualClock())
    with gate.admit(weight=3), gate.admit(weight=7):
        refused = refused_by(gate)
    text = "gate 'db' over its rate of 150/min (burst 10): 10 of 20 in flight (priority critical)"
    assert str(refused) == f"{text}; retry in about 0.4 s"
    assert refused.rate == "150/min (burst 10)"
    assert str(refused_by(gate, weight=11)).endswith("no retry can succeed")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda shed: pickle.loads(pickle.dumps(shed))])
def test_a_copy_still_says_it(copied: Any) -> None:
    gate = Gate("db", limit=20, rate="150/min", burst=1, clock=ManualClock())
    with gate:
        refused = refused_by(gate)
    again = copied(refused)
    assert (str(again), again.rate, again.retry_after) == (str(refused), "150/min (burst 1)", 0.4)


@pytest.mark.parametrize("rate", ["1/s", "7/min", "700/min", "3/h", "999/h", "120000/min"])
@pytest.mark.parametrize("weight", [1, 3])
def test_d23_a_lone_client_that_waits_as_told_is_admitted(rate: str, weight: int) -> None:
    for told in ("header", "retry_after"):
        clock = ManualClock(12_345)
        gate = Gate("db", limit=10_000, rate=rate, burst=3_000, clock=clock)
        while permit := gate.try_admit(weight=weight):
            permit.release()
            clock.advance(7)
        refused = refused_by(gate, weight=weight)
        assert refused.retry_after is not None
        assert 0 < refused.retry_after < math.inf
        wait = float(refused.retry_after_header) if told == "header" else refused.retry_after
        assert told != "header" or wait >= 1
        clock.advance(math.ceil(wait * 1e9))
        with gate.admit(weight=weight):
            pass


def test_d33_never_where_no_wait_helps() -> None:
    gate = Gate("db", limit=10, rate="0/s", clock=ManualClock())
    with gate:
        pass
    assert refused_by(gate).retry_after == math.inf
    assert refused_by(gate).retry_after_header.isdigit()


def test_hooks_and_logs_are_told() -> None:
    clock = ManualClock()
    gate = Gate("db", limit=10, rate="1/s", clock=clock)
    told: list[Event] = []
    gate.subscribe(told.append)
    with gate:
        refused_by(gate)
    gate.set_rate("150/min", burst=10, cause="deploy")
    gate.set_rate(None)
    assert [(event.kind, event.fields) for event in told] == [
        ("shed", {"reason": "rate", "priority": "critical", "weight": 1, "in_flight": 1, "limit": 10}),
        ("rate", {"rate": "150/min", "burst": 10, "cause": "deploy"}),
        ("rate", {}),
    ]
    assert (told[1].rate, told[1].burst) == ("150/min", 10)
    assert (told[2].rate, told[2].burst) == (None, None)


def test_metrics_have_the_reason() -> None:
    from tidegate._native import sums_here

    gate = Gate("db", limit=10, rate="1/h")
    with gate:
        refused_by(gate, priority="sheddable")
    requests = [row for total in sums_here([gate]) for row in total.requests if row[3]]
    assert any("rate" in row and row[3] == 1 for row in requests), requests


def test_threads_never_get_more_than_burst_and_rate() -> None:
    clock = ManualClock()
    gate = Gate("db", limit=4, rate="1000/s", burst=20, clock=clock)
    admitted = []

    def work() -> None:
        mine = 0
        for _ in range(20_000):
            try:
                with gate:
                    mine += 1
            except Shed:
                pass
            clock.advance(1_000)
        admitted.append(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = gate.stats()
    assert stats.in_flight == 0
    assert stats.admitted["critical"] == stats.released["success"] == sum(admitted)
    assert sum(admitted) <= 20 + clock.now_ns * 1000 // SECOND
