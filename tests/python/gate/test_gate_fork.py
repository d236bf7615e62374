"""A forked child starts with empty gates; what its parent holds is not its to give back (field fault D09)."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import pytest
from gatekit import admitted, assert_at_rest, in_child, released, shed, until
from tidegate import Gate, Permit

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform"),
    # Since Python 3.12 each fork beside threads is warned of. These tests are about that.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate("db", limit=5)
    yield gate
    assert_at_rest(gate)


@pytest.fixture
def held(gate: Gate) -> Iterator[list[Permit]]:
    """Three of five, taken by the parent."""
    permits = [gate.try_admit(priority="critical_plus") for _ in range(3)]
    yield permits
    assert gate.in_flight == 3, "the parent lost what it held"
    for permit in permits:
        assert permit.release() is True


def test_d09_the_childs_gate_is_empty_and_has_all_its_room(gate: Gate, held: list[Permit]) -> None:
    def child() -> list[Any]:
        before = gate.in_flight, admitted(gate.stats()), gate.stats().high_water
        permits = [gate.try_admit() for _ in range(5)]
        return [before, all(permits), gate.try_admit() is None, gate.in_flight]

    assert in_child(child) == [[0, 0, 0], True, True, 5]


def test_d09_inherited_permits_are_inert_in_the_child(gate: Gate, held: list[Permit]) -> None:
    def child() -> dict[str, Any]:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            own = gate.try_admit()
            told = [permit.released for permit in held]
            first, second, _third = held
            gave_back = first.release()
            second.__exit__(None, None, None)
            try:
                with second:
                    entered = True
            except RuntimeError:
                entered = False
            held.clear()
            del first, second, _third
            gc.collect()
        inside = gate.in_flight
        own.release()
        stats = gate.stats()
        return {
            "told": told,
            "gave back": gave_back,
            "entered": entered,
            "warnings": [str(warning.message) for warning in warned],
            "inside": inside,
            "after": gate.in_flight,
            "unmatched": stats.unmatched_exits,
            "collected": stats.collected,
            "released": released(stats),
        }

    assert in_child(child) == {
        "told": [True, True, True],
        "gave back": False,
        "entered": False,
        "warnings": [],
        "inside": 1,
        "after": 0,
        "unmatched": 0,
        "collected": 0,
        "released": {"success": 1},
    }


def test_d09_a_child_forked_inside_a_block_leaves_nothing_it_did_not_take(gate: Gate) -> None:
    def child() -> list[int]:
        gate.__exit__(None, None, None)  # as when the child unwinds the parent's frames
        return [gate.in_flight, gate.stats().unmatched_exits]

    with gate:
        assert in_child(child) == [0, 1]
        assert gate.in_flight == 1


def test_d09_an_admission_entered_before_the_fork_and_left_after(gate: Gate) -> None:
    admission = gate.admit()
    with admission as permit:
        assert in_child(lambda: [admission.__exit__(None, None, None), gate.in_flight]) == [None, 0]
        assert (permit.released, gate.in_flight) == (False, 1)


def test_d09_configuration_is_inherited_and_then_separate(gate: Gate) -> None:
    gate.set_limit(7, cause="before the fork")
    gate.set_thresholds({"sheddable": 0.5})

    def child() -> list[Any]:
        inherited = [gate.limit, gate.thresholds["sheddable"], gate.limit_history[-1].cause, gate.enforce]
        gate.set_limit(1)
        gate.set_enforce(False)
        gate.close()
        return inherited

    assert in_child(child) == [7, 4, "before the fork", True]
    assert (gate.limit, gate.enforce, gate.closed) == (7, True, False)


def test_d09_dry_run_marks_are_not_inherited(gate: Gate) -> None:
    gate.set_limit(0)
    gate.set_enforce(False)
    over = gate.try_admit()

    def child() -> list[Any]:
        return [gate.stats().over_in_flight, over.release(), gate.stats().over_in_flight, gate.drain(0)]

    assert in_child(child) == [0, False, 0, True]
    assert gate.stats().over_in_flight == 1
    over.release()
    gate.set_limit(5)
    gate.set_enforce(True)


def test_d09_a_closed_gate_is_closed_in_the_child_too() -> None:
    gate = Gate("db", limit=1)
    gate.close()
    assert in_child(lambda: [gate.closed, gate.try_admit() is None, shed(gate.stats())]) == [True, True, 1]


def test_d09_a_child_of_a_child(gate: Gate, held: list[Permit]) -> None:
    def grandchild(permits: list[Permit]) -> list[Any]:
        return [permit.release() for permit in permits] + [gate.in_flight]

    def child() -> Any:
        own = gate.try_admit()
        answer = in_child(lambda: grandchild([*held, own]))
        return [answer, gate.in_flight, own.release(), gate.in_flight]

    assert in_child(child) == [[False, False, False, False, 0], 1, True, 0]


def test_d09_forking_while_threads_use_and_change_the_gate(gate: Gate) -> None:
    """No lock of theirs may stay locked in the child."""
    done = threading.Event()

    def disturb() -> None:
        n = 0
        while not done.is_set():
            n += 1
            gate.set_limit(5 + n % 2, cause="moving")
            gate.retry_after()
            with gate:
                gate.stats()

    def child() -> bool:
        gate.set_limit(3)
        gate.retry_after(weight=3)
        with gate:
            assert gate.in_flight == 1
        Gate("new", limit=1)
        return gate.drain(timeout=30)

    threads = [threading.Thread(target=disturb) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(gate.limit_history) > 10)
        for _ in range(20):
            assert in_child(child) is True
    finally:
        done.set()
        for thread in threads:
            thread.join()
    gate.set_limit(5)


def test_d09_forking_while_a_thread_drains() -> None:
    gate = Gate("db", limit=1)
    permit = gate.try_admit()
    thread = threading.Thread(target=gate.drain)
    thread.start()
    until(lambda: gate.closed)
    assert in_child(lambda: gate.drain(timeout=30)) is True
    permit.release()
    thread.join(30)
    assert not thread.is_alive()


def use_in_a_worker(gate: Gate, connection: Connection) -> None:
    with gate:
        connection.send((os.getpid(), gate.in_flight))
        connection.recv()


def test_d09_multiprocessing_with_fork(gate: Gate, held: list[Permit]) -> None:
    fork = multiprocessing.get_context("fork")
    workers = []
    for _ in range(4):
        ours, theirs = fork.Pipe()
        worker = fork.Process(target=use_in_a_worker, args=(gate, theirs))
        worker.start()
        workers.append((worker, ours))
    reports = [ours.recv() for _, ours in workers]
    assert len({pid for pid, _ in reports} | {os.getpid()}) == 5
    assert [inside for _, inside in reports] == [1, 1, 1, 1], "a process's limit is per process"
    assert gate.in_flight == 3
    for worker, ours in workers:
        ours.send("leave")
        worker.join(30)
        assert worker.exitcode == 0


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_d09_multiprocessing_that_pickles_refuses_with_a_clear_error(gate: Gate, method: str) -> None:
    context = multiprocessing.get_context(method)
    _, theirs = context.Pipe()
    with pytest.raises(TypeError, match="a Gate cannot be pickled or copied"):
        context.Process(target=use_in_a_worker, args=(gate, theirs)).start()
