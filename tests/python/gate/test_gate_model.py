"""Random operations against a sequential model, through the Python API.

Hypothesis shrinks what fails to a few steps and prints them, with the seed to repeat the run
(``pytest --hypothesis-seed=N``).
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tidegate import ConfigError, Gate, Permit, Priority, Shed

LEVELS = list(Priority)
DEFAULTS = [Fraction(1), Fraction(1), Fraction(9, 10), Fraction(3, 4)]
ENDINGS = [
    (None, "success"),
    (KeyError(), "success"),
    (TimeoutError(), "overload"),
    (GeneratorExit(), "ignore"),
]

priorities = st.sampled_from([*LEVELS, None])
weights = st.one_of(st.just(1), st.integers(1, 6))
limits = st.integers(0, 12)
shares = st.integers(0, 10).map(lambda tenths: tenths / 10)
reserves = st.integers(0, 12).map(lambda weight: {"reserve": weight})
threshold_maps = st.dictionaries(st.sampled_from(LEVELS[1:]), st.one_of(shares, reserves), max_size=3)


def bound(threshold: Any, limit: int) -> int:
    if isinstance(threshold, dict):
        return max(0, limit - threshold["reserve"])
    return math.ceil(Fraction(threshold).limit_denominator(10) * limit)


def rises(given: dict[Priority, Any], limit: int) -> bool:
    """Whether a less important priority is let in where a more important one is not."""
    set_ones = [given[level] for level in LEVELS if level in given]
    for above, below in pairwise(set_ones):
        if isinstance(above, dict) and isinstance(below, dict):
            if below["reserve"] < above["reserve"]:
                return True
        elif isinstance(above, dict) or isinstance(below, dict):
            if bound(below, limit) > bound(above, limit):
                return True
        elif below > above:
            return True
    return False


class Model(RuleBasedStateMachine):
    """What a gate is, without any cleverness: a sum, four bounds, and lists of who is inside."""

    @initialize(limit=limits, default=st.sampled_from(LEVELS), enforce=st.booleans())
    def make(self, limit: int, default: Priority, enforce: bool) -> None:
        self.gate = Gate("db", limit, default_priority=default, enforce=enforce)
        self.limit, self.given, self.default, self.enforce = limit, {}, default, enforce
        self.closed = False
        self.permits: list[Permit] = []
        self.bare = 0
        self.generation = self.high_water = self.fallbacks = 0
        self.counts: Counter[Any] = Counter()

    def bounds(self) -> list[int]:
        found, most = [], self.limit
        for place, (level, default) in enumerate(zip(LEVELS, DEFAULTS, strict=True)):
            if level in self.given:
                own = bound(self.given[level], self.limit)
            else:  # a default gives way to what is given, below it and above it
                below = [self.given[lower] for lower in LEVELS[place:] if lower in self.given]
                own = max(bound(threshold, self.limit) for threshold in [default, *below])
            most = min(most, own)
            found.append(most)
        return found

    @property
    def inside(self) -> int:
        return self.bare + sum(permit.weight for permit in self.permits if not permit.over)

    def decide(self, priority: Priority, weight: int) -> str:
        """The reason to turn it away, or "" to let it in."""
        if self.closed:
            return "closed"
        if self.inside + weight > self.limit:
            return "limit"
        if self.inside + weight > self.bounds()[priority.level]:
            return "priority"
        return ""

    def count(self, asked: Priority | None, reason: str, weight: int) -> None:
        priority = asked or self.default
        if not reason:
            self.counts["admitted", priority] += 1
            self.fallbacks += asked is None
            self.high_water = max(self.high_water, self.inside)
        elif self.enforce or reason == "closed":
            self.counts["shed", priority, reason] += 1
        else:
            self.counts["would shed", priority] += 1

    @rule(asked=priorities, weight=weights, way=st.sampled_from(["try_admit", "admit"]))
    def ask(self, asked: Priority | None, weight: int, way: str) -> None:
        reason = self.decide(asked or self.default, weight)
        let_in = not reason or (not self.enforce and reason != "closed")
        if way == "try_admit":
            permit = self.gate.try_admit(priority=asked, weight=weight)
        else:
            try:
                permit = self.gate.admit(priority=asked, weight=weight).__enter__()
            except Shed as refused:
                permit = None
                assert refused.args == ("db", reason, asked or self.default, self.inside, self.limit)
        assert (permit is not None) == let_in
        if permit is not None:
            assert permit.over == bool(reason)
            self.permits.append(permit)
        self.count(asked, reason, weight)

    @precondition(lambda self: self.enforce)  # in dry run a bare exit draws whose place it frees
    @rule()
    def enter(self) -> None:
        reason = self.decide(self.default, 1)
        try:
            self.gate.__enter__()
        except Shed as refused:
            assert refused.reason == reason
        else:
            assert not reason
            self.bare += 1
        self.count(None, reason, 1)

    @precondition(lambda self: self.bare)
    @rule(ending=st.sampled_from(ENDINGS))
    def leave(self, ending: tuple[BaseException | None, str]) -> None:
        error, outcome = ending
        self.gate.__exit__(type(error) if error else None, error, None)
        self.bare -= 1
        self.counts["released", outcome] += 1

    @precondition(lambda self: self.permits)
    @rule(
        data=st.data(), ending=st.sampled_from(ENDINGS), how=st.sampled_from(["release", "exit", "collect"])
    )
    def give_back(self, data: st.DataObject, ending: tuple[BaseException | None, str], how: str) -> None:
        permit = self.permits.pop(data.draw(st.integers(0, len(self.permits) - 1), label="permit"))
        over, (error, outcome) = permit.over, ending
        if how == "release":
            assert permit.release(outcome) is True
            assert permit.release("ignore") is False
        elif how == "exit":
            permit.__exit__(type(error) if error else None, error, None)
            assert permit.released
        else:
            outcome = "ignore"
            self.counts["collected"] += 1
            with pytest.warns(ResourceWarning):
                del permit
        if not over:
            self.counts["released", outcome] += 1

    @rule(limit=limits)
    def set_limit(self, limit: int) -> None:
        self.gate.set_limit(limit)
        self.limit = limit
        self.generation += 1

    @rule(given=threshold_maps)
    def set_thresholds(self, given: dict[Priority, Any]) -> None:
        if rises(given, self.limit):
            with pytest.raises(ConfigError):
                self.gate.set_thresholds(given)
        else:
            self.gate.set_thresholds(given)
            self.given = given
            self.generation += 1

    @rule(enforce=st.booleans())
    def set_enforce(self, enforce: bool) -> None:
        self.gate.set_enforce(enforce)
        self.enforce = enforce
        self.generation += 1

    @rule(sure=st.integers(0, 9))
    def close(self, sure: int) -> None:
        if sure == 0:
            self.gate.close()
            self.closed = True

    @rule(asked=priorities, weight=weights)
    def ask_when_to_return(self, asked: Priority | None, weight: int) -> None:
        priority = asked or self.default
        wait = self.gate.retry_after(priority=asked, weight=weight)
        if not self.closed and not self.enforce:
            assert wait == 0.0  # dry run admits whatever it is asked
        elif self.closed or weight > self.bounds()[priority.level]:
            assert wait == math.inf
        else:
            assert (wait == 0.0) == (not self.decide(priority, weight))
            assert wait is None or math.isfinite(wait)

    @invariant()
    def all_numbers_agree(self) -> None:
        gate, stats = self.gate, self.gate.stats()
        assert (gate.limit, gate.enforce, gate.closed) == (self.limit, self.enforce, self.closed)
        assert list(gate.thresholds.values()) == self.bounds()
        assert gate.in_flight == stats.in_flight == self.inside
        assert stats.over_in_flight == sum(permit.over for permit in self.permits)
        assert (stats.high_water, stats.fallback_priority) == (self.high_water, self.fallbacks)
        assert (stats.unmatched_exits, stats.collected) == (0, self.counts["collected"])
        found: Counter[Any] = Counter(collected=stats.collected)
        for priority in Priority:
            found["admitted", priority] = stats.admitted[priority]
            found["would shed", priority] = stats.would_shed[priority]
            for reason, n in stats.shed[priority].items():
                found["shed", priority, str(reason)] = n
        for outcome, n in stats.released.items():
            found["released", str(outcome)] = n
        assert +found == +self.counts
        if not self.closed:
            assert stats.generation == self.generation

    def teardown(self) -> None:
        for permit in getattr(self, "permits", []):
            permit.release()


TestModel = Model.TestCase
TestModel.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
