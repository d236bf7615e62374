"""A permit is released exactly once, by whoever comes first."""

from __future__ import annotations

import pytest
from gatekit import admitted, assert_at_rest, in_thread, released, together
from tidegate import Gate, Outcome, Priority


def test_release_says_whether_it_was_the_one(gate: Gate) -> None:
    permit = gate.try_admit()
    assert not permit.released
    assert permit.release() is True
    assert permit.released
    assert permit.release() is False
    assert_at_rest(gate)


def test_d06_the_second_release_is_a_no_op_wherever_it_comes_from(gate: Gate) -> None:
    permit = gate.try_admit()
    permit.release()
    permit.release("overload")

    with gate.admit() as permit:
        permit.release()

    with gate.try_admit() as permit:
        permit.release()

    permit = gate.try_admit()
    permit.release()
    del permit

    stats = gate.stats()
    assert (admitted(stats), released(stats), stats.collected) == (4, {"success": 4}, 0)
    assert_at_rest(gate)  # which tries the limit and one more


def test_d06_two_threads_release_one_permit_at_once() -> None:
    gate = Gate("db", limit=1)
    for _ in range(300):
        permit = gate.try_admit()
        assert sorted(together(permit.release, permit.release)) == [False, True]
        assert gate.in_flight == 0
    assert_at_rest(gate)


@pytest.mark.parametrize("outcome", [*Outcome, "success", "overload", "ignore"])
def test_release_takes_an_outcome(gate: Gate, outcome: str) -> None:
    gate.try_admit().release(outcome)
    assert released(gate.stats()) == {str(outcome): 1}


def test_only_the_first_outcome_counts(gate: Gate) -> None:
    permit = gate.try_admit()
    permit.release("ignore")
    permit.release("overload")
    assert released(gate.stats()) == {"ignore": 1}


def test_an_unknown_outcome_releases_nothing(gate: Gate) -> None:
    permit = gate.try_admit()
    with pytest.raises(ValueError, match="outcome must be one of"):
        permit.release("fine")
    assert (permit.released, gate.in_flight) == (False, 1)
    permit.release()


def test_a_permit_is_a_context_manager(gate: Gate) -> None:
    with gate.try_admit() as permit:
        assert gate.in_flight == 1
    assert permit.released
    with pytest.raises(RuntimeError, match="already released"), permit:
        pytest.fail("the body ran")
    assert_at_rest(gate)


def test_d26_a_permit_may_be_released_and_left_in_another_thread(gate: Gate) -> None:
    permit = gate.try_admit()
    in_thread(permit.release)
    assert gate.in_flight == 0

    permit = in_thread(gate.try_admit)
    in_thread(lambda: permit.__exit__(None, None, None))
    assert_at_rest(gate)


def test_what_a_permit_tells() -> None:
    gate = Gate("db", limit=5)
    permit = gate.try_admit(priority="essential", weight=2)
    assert (permit.priority, permit.weight, permit.over) == (Priority.CRITICAL, 2, False)
    assert repr(permit) == '<Permit of gate "db": held, priority critical, weight 2>'
    permit.release()
    assert repr(permit) == '<Permit of gate "db": released, priority critical, weight 2>'
    for name, value in {"weight": 1, "released": False, "new": 1}.items():
        with pytest.raises(AttributeError):
            setattr(permit, name, value)


def test_a_permit_outlives_its_gate() -> None:
    permit = Gate("short lived", limit=1).try_admit()
    assert "short lived" in repr(permit)
    assert permit.release() is True
