"""``Shed``: an exception that tells why and for how long, and computes nothing until asked."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
from tidegate import ConfigError, Gate, Priority, Reason, Shed, TidegateError
from tidegate.testing import ManualClock

SECOND = 1_000_000_000


def refused_by(gate: Gate, **asked: object) -> Shed:
    with pytest.raises(Shed) as refused, gate.admit(**asked):
        pytest.fail("admitted")
    return refused.value


def busy_gate() -> tuple[Gate, ManualClock]:
    """Full since the start, and one permit a second has come and gone for ten seconds."""
    clock = ManualClock()
    gate = Gate("db", limit=1, clock=clock)
    for _ in range(10):
        with gate:
            clock.advance(SECOND)
    gate.__enter__()
    return gate, clock


def test_what_a_shed_is() -> None:
    refused = refused_by(Gate("db", limit=0))
    assert isinstance(refused, TidegateError)
    assert not isinstance(refused, OSError | ValueError), "a retry policy for TimeoutErrors must not see it"
    assert issubclass(ConfigError, TidegateError)
    assert issubclass(ConfigError, ValueError)


def test_it_carries_the_numbers_of_the_decision() -> None:
    gate = Gate("db", limit=10)
    with gate.admit(weight=9):
        refused = refused_by(gate, priority="sheddable", weight=1)
    assert refused.args == ("db", Reason.PRIORITY, Priority.SHEDDABLE, 9, 10)
    assert (refused.gate, refused.reason, refused.priority) == ("db", "priority", "sheddable")
    assert (refused.in_flight, refused.limit) == (9, 10)
    assert isinstance(refused.reason, Reason)
    assert isinstance(refused.priority, Priority)


FULL = "20 of 20 in flight (priority sheddable)"


@pytest.mark.parametrize(
    ("reason", "retry_after", "message"),
    [
        ("limit", 0.42, f"gate 'db' full: {FULL}; retry in about 0.42 s"),
        ("limit", None, f"gate 'db' full: {FULL}"),
        ("limit", math.inf, f"gate 'db' full: {FULL}; no retry can succeed"),
        ("priority", 57.2, f"gate 'db' shed by priority: {FULL}; retry in about 57 s"),
        ("rate", None, f"gate 'db' over its rate: {FULL}"),
        ("pressure", None, f"gate 'db' shed by pressure: {FULL}"),
        ("timeout", None, f"gate 'db' shed by timeout: {FULL}"),
        ("share", None, f"gate 'db' shed by share: {FULL}"),
        ("closed", math.inf, "gate 'db' is closed"),
    ],
)
def test_the_message(reason: str, retry_after: float | None, message: str) -> None:
    assert str(Shed("db", reason, "sheddable", 20, 20, retry_after)) == message


def test_every_reason_has_a_message() -> None:
    for reason in Reason:
        assert "'db'" in str(Shed("db", reason, "critical", 1, 1))


def test_the_representation() -> None:
    assert repr(Shed("d'b", "limit", "essential", 1, 2)) == (
        "Shed(gate=\"d'b\", reason='limit', priority='critical', in_flight=1, limit=2)"
    )


# --- retry_after -------------------------------------------------------------------------------


def test_retry_after_is_computed_when_asked_for_and_kept() -> None:
    gate, clock = busy_gate()
    refused = refused_by(gate)
    with pytest.raises(AttributeError):
        _ = refused._retry_after
    clock.advance(10 * SECOND)  # ten answers in twenty seconds
    assert refused.retry_after == 2.0
    clock.advance(20 * SECOND)
    assert refused.retry_after == 2.0
    assert refused_by(gate).retry_after == 20.0, "the refusal streak, since somebody first asked"


def test_retry_after_is_that_of_the_gate_for_the_same_question() -> None:
    gate, _ = busy_gate()
    assert refused_by(gate).retry_after == gate.retry_after() == 1.0
    gate.set_limit(3)
    assert refused_by(gate, weight=3).retry_after == gate.retry_after(weight=3) == 1.0
    assert refused_by(gate, weight=4).retry_after == math.inf, "it never fits"
    assert gate.retry_after() == 0.0, "it fits now"
    assert Gate("new", limit=1).retry_after(weight=2) == math.inf


def test_unknown_and_never() -> None:
    gate = Gate("db", limit=1)
    with gate:
        assert refused_by(gate).retry_after is None, "nothing has ever completed"
    gate.close()
    assert refused_by(gate).retry_after == math.inf
    assert refused_by(Gate("db", limit=0)).retry_after == math.inf


def test_a_shed_outlives_its_gate() -> None:
    refused = refused_by(Gate("db", limit=0))
    assert refused.retry_after == math.inf


@pytest.mark.parametrize(
    ("wait", "least"),
    [(0.493, 1), (57.2, 58), (0.0, 1), (-1.0, 1), (None, 1), (1.0, 1), (10.0, 10), (math.inf, 60)],
)
def test_d23_the_header_is_whole_seconds_rounded_up_and_jittered_upwards(wait: float, least: int) -> None:
    """Docs: unknown is answered with 1 or 2 s, never with 60 s and jitter."""
    refused = Shed("db", "limit", "critical", 1, 1, wait)
    seen = {refused.retry_after_header for _ in range(1_000)}
    assert all(value.isascii() and value.isdigit() for value in seen)
    values = {int(value) for value in seen}
    assert min(values) == least
    assert max(values) == least + max(1, least // 2)


# --- rebuilding --------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_keeps_everything(protocol: int) -> None:
    gate, clock = busy_gate()
    refused = refused_by(gate)
    refused.add_note("while answering /reports")
    rebuilt = pickle.loads(pickle.dumps(refused, protocol))
    clock.advance(50 * SECOND)
    assert_same(rebuilt, refused)


def test_copying_keeps_everything() -> None:
    gate, _ = busy_gate()
    refused = refused_by(gate)
    refused.add_note("while answering /reports")
    for rebuilt in (copy.copy(refused), copy.deepcopy(refused)):
        assert_same(rebuilt, refused)


def assert_same(rebuilt: Shed, refused: Shed) -> None:
    assert type(rebuilt) is Shed
    assert rebuilt is not refused
    assert rebuilt.args == refused.args
    assert (str(rebuilt), repr(rebuilt)) == (str(refused), repr(refused))
    assert rebuilt.retry_after == refused.retry_after == 1.0
    assert rebuilt.__notes__ == ["while answering /reports"]


def test_it_is_rebuilt_from_its_args() -> None:
    refused = refused_by(Gate("db", limit=0), priority="sheddable")
    rebuilt = Shed(*refused.args)
    assert rebuilt.args == refused.args
    assert rebuilt.retry_after is None, "the gate is not one of them"


def test_made_by_hand_it_takes_names_and_refuses_others() -> None:
    made = Shed("db", "limit", "non-essential", 1, 1)
    assert made.priority is Priority.SHEDDABLE
    for reason, priority in [("full", "critical"), ("limit", "urgent")]:
        with pytest.raises(ValueError):
            Shed("db", reason, priority, 1, 1)


def test_a_subclass_pickles_as_itself() -> None:
    rebuilt = pickle.loads(pickle.dumps(TenantShed("db", "limit", "critical", 1, 1, 0.5)))
    assert type(rebuilt) is TenantShed
    assert rebuilt.retry_after == 0.5


class TenantShed(Shed):
    """Of an application that says more."""
