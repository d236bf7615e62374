"""tidegate.testing: a gate that is full for as long as a block lasts, and one that must be empty."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from gatekit import PATIENCE, admitted, assert_at_rest, shed, until
from tidegate import Gate, Priority, Reason, Shed
from tidegate.testing import assert_at_rest as public_assert_at_rest
from tidegate.testing import full


@pytest.fixture
def gate() -> Gate:
    return Gate("db", limit=3)


# --- full ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [0, 1, 2, 3])
def test_everything_is_shed_and_all_is_restored(gate: Gate, inside: int) -> None:
    held = [gate.try_admit() for _ in range(inside)]
    with full(gate):
        for priority in Priority:
            with pytest.raises(Shed) as caught:
                gate.admit(priority=priority).__enter__()
            assert caught.value.reason is Reason.LIMIT
        assert gate.try_admit() is None
        for permit in held:
            assert permit is not None
            permit.release()
        assert gate.try_admit() is None  # what others give back makes no room
    assert (gate.limit, gate.in_flight) == (3, 0)
    assert_at_rest(gate)


def test_the_shed_is_that_of_a_full_gate(gate: Gate) -> None:
    with full(gate), pytest.raises(Shed, match="gate 'db' full: 3 of 3 in flight") as caught, gate:
        pass
    assert caught.value.retry_after is None
    assert int(caught.value.retry_after_header) <= 2


def test_others_inside_keep_their_permits(gate: Gate) -> None:
    with gate:
        with full(gate):
            assert gate.try_admit() is None
        assert gate.in_flight == 1
        with gate:
            assert gate.in_flight == 2


def test_it_ends_with_an_exception_too(gate: Gate) -> None:
    with pytest.raises(ValueError, match="a bug"), full(gate):
        raise ValueError("a bug")
    assert_at_rest(gate)


def test_full_in_full(gate: Gate) -> None:
    with full(gate):
        with full(gate):
            assert gate.try_admit() is None
        assert gate.try_admit() is None
    assert gate.limit == 3
    assert_at_rest(gate)


def test_a_limit_that_the_block_sets_stays(gate: Gate) -> None:
    with gate:
        with full(gate):
            gate.set_limit(7)
        assert gate.limit == 7


def test_dry_run_sheds_inside_and_goes_on_behind() -> None:
    gate = Gate("db", limit=1, enforce=False)
    with full(gate), pytest.raises(Shed):
        gate.__enter__()
    assert not gate.enforce


@pytest.mark.parametrize("limit", [0, 1])
def test_gates_without_room_stay_as_they_are(limit: int) -> None:
    gate = Gate("db", limit=limit)
    if limit:
        gate.close()
    with full(gate):
        assert gate.try_admit() is None
    assert (gate.limit, gate.closed) == (limit, limit == 1)


def test_it_holds_while_other_threads_come_and_go(gate: Gate) -> None:
    stop = threading.Event()

    def storm() -> None:
        while not stop.is_set():
            permit = gate.try_admit()
            if permit:
                permit.release()

    threads = [threading.Thread(target=storm) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            with full(gate):
                before = gate.stats()
                until(lambda before=before: shed(gate.stats()) > shed(before) + 10)
                assert admitted(gate.stats()) == admitted(before)
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert_at_rest(gate)


# --- at rest ---------------------------------------------------------------------------------------


def leave_inside(gate: Gate) -> None:
    gate.__enter__()


def exit_twice(gate: Gate) -> None:
    with gate:
        pass
    gate.__exit__(None, None, None)


def lose(gate: Gate) -> None:
    gate.try_admit()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (leave_inside, "gate 'db' is not at rest: 1 of 3 in flight: somebody still holds a permit"),
        (exit_twice, "exits without an entry: 1"),
        (lose, "permits that were garbage-collected, and not released: 1"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_is_left_is_said(gate: Gate, fault: Callable[[Gate], None], message: str) -> None:
    public_assert_at_rest(gate)
    fault(gate)
    with pytest.raises(AssertionError, match=message):
        public_assert_at_rest(gate, patience=0.01)


def test_what_dry_run_let_in_is_said(gate: Gate) -> None:
    gate.set_enforce(False)
    permit = gate.try_admit(weight=4)
    with pytest.raises(AssertionError, match="beyond the limit, as dry run lets in: 1"):
        public_assert_at_rest(gate, patience=0.01)
    assert permit is not None
    permit.release()
    public_assert_at_rest(gate)


def test_what_was_lost_before_is_not_held_against_it(gate: Gate) -> None:
    exit_twice(gate)
    before = gate.stats()
    public_assert_at_rest(gate, since=before)
    exit_twice(gate)
    with pytest.raises(AssertionError, match="exits without an entry: 1"):
        public_assert_at_rest(gate, since=before)


def test_it_waits_for_who_is_about_to_leave(gate: Gate) -> None:
    permit = gate.try_admit()
    assert permit is not None
    timer = threading.Timer(0.02, permit.release)
    timer.start()
    public_assert_at_rest(gate, patience=PATIENCE)
    timer.join()
