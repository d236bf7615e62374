"""The four priorities: their names, their order, and what each of them may take."""

from __future__ import annotations

import pytest
from tidegate import ConfigError, Gate, Priority, Shed

NAMES = ["critical_plus", "critical", "sheddable_plus", "sheddable"]  # most important first


def test_the_names_are_strings_most_important_first() -> None:
    assert [str(priority) for priority in Priority] == NAMES
    assert [priority.level for priority in Priority] == [0, 1, 2, 3]
    assert all(priority == name for priority, name in zip(Priority, NAMES, strict=True))


def test_more_important_compares_greater() -> None:
    assert sorted(Priority, reverse=True) == list(Priority)
    assert Priority.CRITICAL > Priority.SHEDDABLE_PLUS > Priority.SHEDDABLE
    assert max(Priority.SHEDDABLE, Priority.CRITICAL) is Priority.CRITICAL
    assert Priority.CRITICAL >= "critical" >= Priority.CRITICAL
    assert Priority.SHEDDABLE < "essential"
    with pytest.raises(ValueError, match="not a valid Priority"):
        _ = Priority.CRITICAL < "urgent"


def test_essential_and_non_essential_are_further_names() -> None:
    assert Priority("essential") is Priority.CRITICAL
    assert Priority("non-essential") is Priority.SHEDDABLE


@pytest.mark.parametrize("given", [*Priority, *NAMES, "essential", "non-essential"])
def test_a_name_is_as_good_as_a_priority_everywhere(given: str) -> None:
    wanted = Priority(given)
    wanted_share = {0: 1.0, 1: 0.8}.get(wanted.level, 0.6)
    gate = Gate("db", limit=10, default_priority=given, thresholds={given: wanted_share})
    assert gate.default_priority is wanted
    assert gate.thresholds[wanted] == 10 * wanted_share
    with gate.admit(priority=given) as permit:
        assert permit.priority is wanted
    with gate.try_admit(priority=given) as permit:
        assert permit.priority is wanted
    gate.guard(lambda: None, priority=given)()
    assert gate.stats().admitted[wanted] == 3
    assert gate.retry_after(priority=given) == 0.0


@pytest.mark.parametrize("bad", ["", "Critical", "CRITICAL", "critical ", "high", "critical\0", "\ud800"])
def test_any_other_name_is_refused(gate: Gate, bad: str) -> None:
    for call in (gate.admit, gate.try_admit, gate.guard, gate.retry_after):
        with pytest.raises(ConfigError, match="priority must be one of critical_plus"):
            call(priority=bad)
    with pytest.raises(ConfigError, match="priority must be one of"):
        Gate("db", limit=1, default_priority=bad)


def test_the_default_reserves() -> None:
    gate = Gate("db", limit=20)
    assert list(gate.thresholds.values()) == [20, 20, 18, 15]
    permits = [gate.try_admit(priority="sheddable") for _ in range(15)]
    assert gate.try_admit(priority="sheddable") is None
    permits += [gate.try_admit(priority="sheddable_plus") for _ in range(3)]
    assert gate.try_admit(priority="sheddable_plus") is None
    permits += [gate.try_admit(priority="critical") for _ in range(2)]
    assert all(permits)
    assert gate.try_admit(priority="critical") is None
    assert gate.try_admit(priority="critical_plus") is None

    reasons = {priority: {r: n for r, n in by.items() if n} for priority, by in gate.stats().shed.items()}
    assert reasons == {
        "critical_plus": {"limit": 1},
        "critical": {"limit": 1},
        "sheddable_plus": {"priority": 1},
        "sheddable": {"priority": 1},
    }
    for permit in permits:
        permit.release()


def test_the_reason_is_limit_when_no_priority_would_have_helped() -> None:
    gate = Gate("db", limit=10)
    with gate.admit(weight=9), pytest.raises(Shed) as refused, gate.admit(priority="sheddable", weight=2):
        pass
    assert refused.value.reason == "limit"
    with gate.admit(weight=8), pytest.raises(Shed) as refused, gate.admit(priority="sheddable", weight=2):
        pass
    assert refused.value.reason == "priority"
