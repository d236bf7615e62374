"""Dry run sheds nothing and counts what enforcement would have shed."""

from __future__ import annotations

import random

import pytest
from gatekit import admitted, assert_at_rest, released, shed, would_shed
from tidegate import Gate, Priority, Shed


@pytest.fixture
def dry() -> Gate:
    return Gate("db", limit=2, enforce=False)


def test_what_would_be_shed_is_let_in_counted_and_marked(dry: Gate) -> None:
    permits = [dry.try_admit() for _ in range(5)]
    assert [permit.over for permit in permits] == [False, False, True, True, True]
    stats = dry.stats()
    assert (stats.in_flight, stats.over_in_flight, stats.high_water) == (2, 3, 2)
    assert (admitted(stats), would_shed(stats), shed(stats)) == (2, 3, 0)
    for permit in permits:
        permit.release()
    assert_at_rest(dry)
    assert released(dry.stats()) == {"success": 2}, "over-limit permits are not part of what was admitted"


def test_a_place_is_free_when_one_that_was_admitted_leaves_not_one_that_was_over(dry: Gate) -> None:
    first, second, over = (dry.try_admit() for _ in range(3))
    over.release()
    over = dry.try_admit()
    assert over.over, "an over-limit permit has no place, so it frees none"
    first.release()
    first = dry.try_admit()
    assert not first.over
    for permit in (first, second, over):
        permit.release()
    assert_at_rest(dry)


def test_by_priority_and_whatever_the_reason() -> None:
    gate = Gate("db", limit=4, enforce=False, thresholds={"sheddable": 0.5})
    with gate.admit(weight=2), gate.admit(priority="sheddable") as over:
        assert over.over
        assert (over.priority, over.weight) == ("sheddable", 1)
        with gate.admit(weight=3) as heavy:
            assert (heavy.over, heavy.weight) == (True, 3)
    assert gate.stats().would_shed == {
        Priority.CRITICAL_PLUS: 0,
        Priority.CRITICAL: 1,
        Priority.SHEDDABLE_PLUS: 0,
        Priority.SHEDDABLE: 1,
    }
    assert_at_rest(gate)


def test_bare_blocks_conserve_everything(seed: int) -> None:
    """Which exit was the one over the limit is drawn; that all of them leave is not."""
    rng = random.Random(seed)
    gate = Gate("db", limit=3, enforce=False)
    inside = 0
    for _ in range(5_000):
        if inside and rng.random() < 0.5:
            gate.__exit__(None, None, None)
            inside -= 1
        else:
            gate.__enter__()
            inside += 1
        stats = gate.stats()
        assert stats.in_flight + stats.over_in_flight == inside
        assert stats.in_flight <= 3
    for _ in range(inside):
        gate.__exit__(None, None, None)
    assert would_shed(gate.stats()) > 0
    assert_at_rest(gate)


def test_bare_blocks_and_permits_mixed_while_enforcement_is_switched(seed: int) -> None:
    rng = random.Random(seed)
    gate = Gate("db", limit=3, enforce=False)
    bare, permits, attempts = 0, [], 0
    for _ in range(5_000):
        action = rng.randrange(5)
        if action == 0:
            attempts += 1
            try:
                gate.__enter__()
                bare += 1
            except Shed:
                assert gate.enforce
        elif action == 1:
            attempts += 1
            permit = gate.try_admit(weight=rng.randint(1, 3))
            if permit is None:
                assert gate.enforce
            else:
                permits.append(permit)
        elif action == 2 and bare:
            gate.__exit__(None, None, None)
            bare -= 1
        elif action == 3 and permits:
            permits.pop(rng.randrange(len(permits))).release()
        elif action == 4 and rng.random() < 0.2:
            gate.set_enforce(rng.random() < 0.5)
        assert gate.in_flight <= 3
    for permit in permits:
        permit.release()
    for _ in range(bare):
        gate.__exit__(None, None, None)
    stats = gate.stats()
    assert admitted(stats) + would_shed(stats) + shed(stats) == attempts
    assert (stats.in_flight, stats.over_in_flight, stats.unmatched_exits) == (0, 0, 0)


def test_enforcement_that_comes_back_counts_only_what_it_would_have_admitted(dry: Gate) -> None:
    first, second, over = (dry.try_admit() for _ in range(3))
    dry.set_enforce(True)
    assert dry.try_admit() is None
    first.release()
    second.release()
    with dry, dry, pytest.raises(Shed), dry:
        pass
    over.release()
    assert_at_rest(dry)


def test_an_over_limit_permit_is_released_once_and_may_be_collected(dry: Gate) -> None:
    with dry, dry:
        over = dry.try_admit()
        assert over.release() is True
        assert over.release() is False
        assert dry.stats().over_in_flight == 0
        over = dry.try_admit()
        with pytest.warns(ResourceWarning, match="collected without release"):
            del over
        assert dry.stats().over_in_flight == 0
    assert dry.stats().collected == 1


def test_guard_is_exact_in_dry_run(dry: Gate) -> None:
    @dry.guard
    def work(depth: int) -> int:
        return work(depth - 1) if depth else dry.stats().over_in_flight

    assert work(5) == 4
    assert_at_rest(dry)


def test_a_closed_gate_is_closed_in_dry_run_too(dry: Gate) -> None:
    dry.close()
    assert dry.try_admit() is None
    assert shed(dry.stats(), "closed") == 1
    assert would_shed(dry.stats()) == 0
