"""What a gate counts: everything once, and nothing that did not happen."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from functools import partial

import pytest
from gatekit import admitted, assert_at_rest, released, shed, together
from tidegate import Gate, Outcome, Priority, Reason, Shed
from tidegate.testing import ManualClock


def test_a_reading_is_frozen(gate: Gate) -> None:
    stats = gate.stats()
    with gate:
        pass
    assert admitted(stats) == 0, "a reading does not move on"
    for name in (
        "limit", "in_flight", "high_water", "admitted", "shed", "would_shed", "released", "unmatched_exits",
        "collected", "fallback_priority", "generation", "over_in_flight", "occupancy", "x",
    ):  # fmt: skip
        with pytest.raises(AttributeError):
            setattr(stats, name, 0)
        with pytest.raises(AttributeError):
            delattr(stats, name)
    stats.admitted[Priority.CRITICAL] = 99
    assert admitted(stats) == 0, "its mappings are copies"


def test_its_mappings_are_complete_and_keyed_by_enum_and_name(gate: Gate) -> None:
    stats = gate.stats()
    assert list(stats.admitted) == list(stats.would_shed) == list(stats.shed) == list(Priority)
    assert all(list(reasons) == list(Reason) for reasons in stats.shed.values())
    assert list(stats.released) == list(Outcome)
    assert stats.shed["sheddable"]["limit"] == 0
    assert all(type(key) is Priority for key in stats.admitted)


def test_the_numbers_of_a_new_gate() -> None:
    stats = Gate("db", limit=7).stats()
    assert (stats.limit, stats.in_flight, stats.high_water, stats.generation) == (7, 0, 0, 0)
    assert (admitted(stats), shed(stats), sum(stats.released.values())) == (0, 0, 0)
    assert (stats.unmatched_exits, stats.collected, stats.fallback_priority) == (0, 0, 0)
    assert repr(stats) == "<Stats: 0 of 7 in flight, admitted 0, shed 0, would shed 0>"


def test_the_high_water_mark_is_the_most_weight_there_ever_was() -> None:
    gate = Gate("db", limit=10)
    with gate.admit(weight=3), gate.admit(weight=4):
        pass
    with gate.admit(weight=6):
        pass
    assert gate.stats().high_water == 7


def test_the_limit_follows_set_limit(gate: Gate) -> None:
    for limit in (5, 0, 2**31 - 1):
        gate.set_limit(limit)
        assert gate.stats().limit == gate.limit == limit


# --- D34: a thousand mixed attempts, each counted once ------------------------------------------


def raising(gate: Gate) -> None:
    with gate.admit(priority="sheddable", weight=2):
        raise KeyError


def timing_out(gate: Gate) -> None:
    with gate:
        raise TimeoutError


def released_twice(gate: Gate) -> None:
    permit = gate.try_admit()
    if permit is not None:
        permit.release("overload")
        permit.release()


def guarded(gate: Gate) -> None:
    gate.guard(lambda: None, priority="sheddable_plus")()


def abandoned(gate: Gate) -> None:
    next(gate.guard(lambda: (yield))())


def cancelled(gate: Gate) -> None:
    async def work() -> None:
        async with gate.admit(priority="critical_plus"):
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        await task

    asyncio.run(main())


def awaited(gate: Gate) -> None:
    async def main() -> None:
        (await gate.admit()).release("ignore")

    asyncio.run(main())


def too_heavy(gate: Gate) -> None:
    with gate.admit(weight=2**31 - 1):
        pytest.fail("it fits")


WAYS = {
    raising: "success",
    timing_out: "overload",
    released_twice: "overload",
    guarded: "success",
    abandoned: "ignore",
    cancelled: "ignore",
    awaited: "ignore",
    too_heavy: "shed",
}


def test_d34_of_a_thousand_mixed_attempts_each_is_counted_once(seed: int) -> None:
    rng = random.Random(seed)
    gate = Gate("db", limit=4)
    expected: Counter[str] = Counter()
    for _ in range(1_000):
        full = rng.random() < 0.4
        gate.set_limit(0 if full else 4)
        way = rng.choice(list(WAYS))
        with contextlib.suppress(Shed, KeyError, TimeoutError, asyncio.CancelledError):
            way(gate)
        expected["shed" if full else WAYS[way]] += 1
        assert gate.stats().limit == gate.limit == (0 if full else 4)
    stats = gate.stats()
    assert {**released(stats), "shed": shed(stats)} == expected
    assert admitted(stats) + shed(stats) == 1_000
    gate.set_limit(4)
    assert_at_rest(gate)


def test_d34_the_same_from_threads(seed: int, restless: None) -> None:
    gate = Gate("db", limit=3)

    def use(number: int) -> int:
        rng = random.Random(seed + number)
        refused = 0
        for _ in range(250):
            try:
                with gate.admit(priority=rng.choice(list(Priority))):
                    if rng.random() < 0.3:
                        raise TimeoutError
            except Shed:
                refused += 1
            except TimeoutError:
                pass
        return refused

    refused = sum(together(*(partial(use, number) for number in range(4))))
    stats = gate.stats()
    assert shed(stats) == refused
    assert admitted(stats) + refused == 1_000
    assert_at_rest(gate)


# --- timing ------------------------------------------------------------------------------------


def test_occupancy_is_weight_times_time() -> None:
    clock = ManualClock(123_456_789)
    gate = Gate("db", limit=10, timing=True, clock=clock)
    with gate.admit(weight=3):
        clock.advance(2_000_000_000)
        with gate:
            clock.advance(1_000_000_000)
            assert gate.stats().occupancy == pytest.approx(3 * 3 + 1)
    clock.advance(50_000_000_000)
    assert gate.stats().occupancy == pytest.approx(10)


def test_latencies_are_within_1_6_percent_and_by_priority() -> None:
    clock = ManualClock()
    gate = Gate("db", limit=10, timing=True, clock=clock)
    for milliseconds in range(1, 101):
        with gate.admit(priority="sheddable"):
            clock.advance(milliseconds * 1_000_000)
    stats = gate.stats()
    for q in (0.01, 0.5, 0.99, 1):
        assert stats.latency(q, "sheddable") == pytest.approx(q / 10, rel=0.016)
    assert stats.latency(0, "sheddable") == pytest.approx(0.001, rel=0.016)
    assert stats.latency(0.5, Priority.CRITICAL) is None, "nothing was counted"


def test_without_timing_there_is_neither(gate: Gate) -> None:
    with gate:
        pass
    assert gate.stats().occupancy is None
    assert gate.stats().latency(0.5, "critical") is None


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan"), float("inf"), 10**400, "0.5", None])
def test_d17_a_quantile_is_a_share(q: object) -> None:
    stats = Gate("db", limit=1, timing=True).stats()
    with pytest.raises((ValueError, TypeError, OverflowError)):
        stats.latency(q, "critical")
    with pytest.raises((ValueError, TypeError)):
        stats.latency(0.5, "urgent")
