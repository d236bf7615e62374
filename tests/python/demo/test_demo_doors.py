from __future__ import annotations

import pytest
from tidegate.demo.doors import ARMS, ARMS_OF, AUTO, UNLIMITED, auto, through


def test_the_arms_are_named_as_everywhere() -> None:
    assert list(ARMS_OF["sqlite"]) == ["ungated", "semaphore", "tidegate"]
    assert list(ARMS_OF["postgres"]) == ["ungated", "stock", "semaphore", "tidegate"] == list(ARMS)


@pytest.mark.parametrize("arm", sorted(UNLIMITED))
def test_without_a_gate_everybody_comes_in(arm: str) -> None:
    door = ARMS[arm](1)
    assert all(door(essential) is not None for essential in [True, False] * 50)


@pytest.mark.parametrize("arm", ["semaphore", "tidegate"])
def test_a_limited_door_turns_away_and_opens_again(arm: str) -> None:
    door = ARMS[arm](4)
    ways_out = [door(True) for _ in range(4)]
    assert door(True) is None
    for leave in ways_out:
        assert leave is not None
        leave()
    held = door(True)
    assert held is not None
    held()


def test_only_the_gate_keeps_room_for_the_essential() -> None:
    def admitted(arm: str) -> tuple[int, int]:
        door = ARMS[arm](8)
        sheddable = [leave for leave in (door(False) for _ in range(10)) if leave is not None]
        essential = [leave for leave in (door(True) for _ in range(10)) if leave is not None]
        for leave in sheddable + essential:
            leave()
        return len(sheddable), len(essential)

    assert admitted("semaphore") == (8, 0)
    assert admitted("tidegate") == (6, 2)


def test_the_gate_that_finds_its_limit_keeps_room_for_the_essential_too() -> None:
    gate = auto(timeout=1.5)
    assert AUTO not in ARMS  # it has no limit to be given
    assert gate.controller is not None
    assert (gate.controller.kind, gate.controller.objective) == ("goodput", 1.5)
    door = through(gate)
    sheddable = [leave for leave in (door(False) for _ in range(2 * gate.limit)) if leave is not None]
    essential = [leave for leave in (door(True) for _ in range(2 * gate.limit)) if leave is not None]
    assert len(sheddable) == gate.limit * 3 // 4
    assert len(sheddable) + len(essential) == gate.limit
    for leave in sheddable + essential:
        leave()
    assert gate.in_flight == 0
