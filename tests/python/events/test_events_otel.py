"""OpenTelemetry metrics, through the real SDK."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import Any

import pytest
from gatekit import assert_at_rest, output_of
from tidegate import ConfigError, Gate, Signal
from tidegate.testing import ManualClock

if importlib.util.find_spec("opentelemetry.sdk") is None:
    pytest.skip("NOT TESTED: opentelemetry-sdk is not installed", allow_module_level=True)

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tidegate.otel import DURATION_BUCKETS, instrument


class Collected:
    """A provider of one's own, and what it collects."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader], shutdown_on_exit=False)

    def metrics(self) -> dict[str, Any]:
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        (resource,) = data.resource_metrics
        (scope,) = resource.scope_metrics
        assert scope.scope.name == "tidegate"
        return {metric.name: metric for metric in scope.metrics}

    def points(self, name: str, value: str = "value") -> dict[tuple[str, ...], Any]:
        """Value by the values of its attributes, in the order of their names."""
        metric = self.metrics().get(name)
        points = metric.data.data_points if metric else []
        found = {
            tuple(str(each) for _, each in sorted(point.attributes.items())): getattr(point, value)
            for point in points
        }
        assert len(found) == len(points)
        return found


@pytest.fixture
def collected() -> Iterator[Collected]:
    collected = Collected()
    yield collected
    collected.provider.shutdown()


def test_what_is_inside_and_what_was_tried(collected: Collected) -> None:
    gate = Gate("db", limit=4)
    instrument(gate, collected.provider)
    with gate, gate.admit(priority="sheddable", weight=2):
        assert collected.points("tidegate.permits.in_use") == {("db",): 3}
        assert gate.try_admit(priority="sheddable") is None
        assert gate.try_admit(weight=5) is None
        assert gate.try_admit(weight=5) is None
    assert collected.points("tidegate.permits.in_use") == {("db",): 0}
    assert collected.points("tidegate.permits.limit") == {("db",): 4}
    gate.set_limit(5)
    assert collected.points("tidegate.permits.limit") == {("db",): 5}
    # Attributes in the order of their names: gate, outcome, priority, reason.
    assert collected.points("tidegate.requests") == {
        ("db", "admitted", "critical_plus"): 0,
        ("db", "admitted", "critical"): 1,
        ("db", "admitted", "sheddable_plus"): 0,
        ("db", "admitted", "sheddable"): 1,
        ("db", "shed", "sheddable", "priority"): 1,
        ("db", "shed", "critical", "limit"): 2,
    }
    assert_at_rest(gate)


def test_kinds_units_and_attributes_are_as_documented(collected: Collected) -> None:
    gate = Gate("db", limit=0, timing=True)
    instrument(gate, collected.provider)
    gate.try_admit()
    gate.set_limit(1)
    with gate.admit():
        pass
    metrics = collected.metrics()
    assert {name: metric.unit for name, metric in metrics.items()} == {
        "tidegate.requests": "{request}",
        "tidegate.permits.in_use": "{permit}",
        "tidegate.permits.limit": "{permit}",
        "tidegate.limit.changes": "{change}",
        "tidegate.permit.duration": "s",
    }
    assert metrics["tidegate.requests"].data.is_monotonic
    assert not metrics["tidegate.permits.in_use"].data.is_monotonic
    assert not metrics["tidegate.permits.limit"].data.is_monotonic
    assert metrics["tidegate.limit.changes"].data.is_monotonic
    assert {frozenset(point.attributes) for point in metrics["tidegate.requests"].data.data_points} == {
        frozenset({"gate", "priority", "outcome"}),
        frozenset({"gate", "priority", "outcome", "reason"}),
    }
    for metric in metrics.values():
        for point in metric.data.data_points:
            assert all(type(each) is str for each in point.attributes.values())


def test_d34_the_limit_and_its_causes_follow_a_controller(collected: Collected) -> None:
    clock = ManualClock(1)
    gate = Gate("db", controller="aimd", max=100, prior=100, clock=clock)
    instrument(gate, collected.provider)
    gate.set_limit(90, cause="deploy")
    for _ in range(50):
        permit = gate.try_admit()
        clock.advance(100_000_000)
        permit.release("overload")
    assert gate.limit < 90
    moves = gate.controller.moves
    assert moves == len(gate.limit_history) - 1
    assert collected.points("tidegate.permits.limit") == {("db",): gate.limit}
    # Attributes in the order of their names: cause, gate.
    assert collected.points("tidegate.limit.changes") == {("deploy", "db"): 1, ("lower", "db"): moves}


def test_the_pressure_of_gates_that_have_signals(collected: Collected) -> None:
    clock = ManualClock(1)
    watched = Gate("db", 5, signals=[Signal("waits", enter_for=0, ramp=0)], clock=clock)
    for gate in (watched, Gate("other", 5)):
        instrument(gate, collected.provider)
    assert collected.points("tidegate.pressure") == {("db",): 0.0}
    watched.signal("waits", 1.0)
    clock.advance(1_000_000_000)
    assert watched.try_admit(priority="sheddable") is None
    assert collected.points("tidegate.pressure") == {("db",): 1.0}
    assert collected.points("tidegate.requests")["db", "shed", "sheddable", "pressure"] == 1


def test_dry_run_counts_what_it_would_have_shed(collected: Collected) -> None:
    gate = Gate("db", limit=0, enforce=False)
    instrument(gate, collected.provider)
    with gate.admit(priority="sheddable"):
        pass
    assert collected.points("tidegate.requests")["db", "would_shed", "sheddable"] == 1


def test_how_long_permits_were_held_by_outcome(collected: Collected) -> None:
    clock = ManualClock()
    gate = Gate("db", limit=3, timing=True, clock=clock)
    instrument(gate, collected.provider)
    for seconds, outcome in [(0.002, "success"), (0.2, "success"), (200.0, "overload"), (400.0, "ignore")]:
        permit = gate.try_admit()
        assert permit is not None
        clock.advance(int(seconds * 1e9))
        permit.release(outcome)  # type: ignore[arg-type]
    with gate:
        clock.advance(1)  # a bare block is not timed
    assert collected.points("tidegate.permit.duration", "count") == {
        ("db", "success"): 2,
        ("db", "overload"): 1,
        ("db", "ignore"): 1,
    }
    assert collected.points("tidegate.permit.duration", "sum")["db", "success"] == pytest.approx(0.202)
    assert (
        collected.points("tidegate.permit.duration", "explicit_bounds")["db", "success"] == DURATION_BUCKETS
    )
    buckets = collected.points("tidegate.permit.duration", "bucket_counts")
    assert buckets["db", "overload"][-2:] == (1, 0)
    assert buckets["db", "ignore"][-1] == 1
    assert DURATION_BUCKETS[0] == 0.001
    assert DURATION_BUCKETS[-1] == 300


def test_a_gate_without_timing_has_no_durations_and_its_permits_pay_nothing(collected: Collected) -> None:
    gate = Gate("db", limit=1)
    instrument(gate, collected.provider)
    with gate.admit():
        pass
    assert "tidegate.permit.duration" not in collected.metrics()


def test_gates_are_told_apart_by_name_and_added_up_within_one(collected: Collected) -> None:
    gates = [Gate(name, limit=2) for name in ("x", "x_total", "x", 'a"b\\c\u0142')]
    for gate in gates:
        instrument(gate, collected.provider)
    with gates[0], gates[2]:
        assert collected.points("tidegate.permits.in_use") == {
            ("x",): 2,
            ("x_total",): 0,
            ('a"b\\c\u0142',): 0,
        }
    assert collected.points("tidegate.permits.limit")["x",] == 4
    assert collected.points("tidegate.requests")["x", "admitted", "critical"] == 2


def test_a_closed_gate_has_no_limit_and_nothing_in_use_once_it_is_empty(collected: Collected) -> None:
    old, new = Gate("db", limit=20), Gate("db", limit=5)  # one takes the other's place
    instrument(old, collected.provider)
    with old:
        old.close()
        assert collected.points("tidegate.permits.limit") == {}
        instrument(new, collected.provider)
        assert collected.points("tidegate.permits.limit") == {("db",): 5}
        assert collected.points("tidegate.permits.in_use") == {("db",): 1}
    new.close()
    assert collected.points("tidegate.permits.in_use") == {}
    assert collected.points("tidegate.requests")["db", "admitted", "critical"] == 1


def test_uninstrumented_it_is_gone_and_can_come_back(collected: Collected) -> None:
    gate, other = Gate("db", limit=1, timing=True), Gate("cache", limit=1)
    uninstrument = instrument(gate, collected.provider)
    instrument(other, collected.provider)
    with pytest.raises(
        ConfigError, match="a gate is instrumented once for each meter provider, got 'db' again"
    ):
        instrument(gate, collected.provider)
    uninstrument()
    assert set(collected.points("tidegate.permits.limit")) == {("cache",)}
    with gate.admit():
        pass
    instrument(gate, collected.provider)
    uninstrument()  # a second call does nothing, also to who came after
    with gate.admit():
        pass
    assert set(collected.points("tidegate.permits.limit")) == {("cache",), ("db",)}
    assert collected.points("tidegate.permit.duration", "count") == {("db", "success"): 1}
    assert collected.points("tidegate.requests")["db", "admitted", "critical"] == 2


def test_two_providers_see_the_same(collected: Collected) -> None:
    other, gate = Collected(), Gate("db", limit=7)
    for provider in (collected.provider, other.provider):
        instrument(gate, provider)
    assert (
        collected.points("tidegate.permits.limit") == other.points("tidegate.permits.limit") == {("db",): 7}
    )
    other.provider.shutdown()


@pytest.mark.parametrize("explicitly", ["None", "provider", "get_meter_provider()"])
def test_the_global_provider_may_be_set_between_two_gates(explicitly: str) -> None:
    """There is but one global provider in a process, hence a process of its own."""
    script = f"""
        from opentelemetry.metrics import get_meter_provider, set_meter_provider
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from tidegate import Gate
        from tidegate.otel import instrument

        reader = InMemoryMetricReader()
        provider = MeterProvider([reader])
        instrument(Gate("before", 1, timing=True))
        set_meter_provider(provider)
        late = Gate("after", 2, timing=True)
        instrument(late, {explicitly})
        late.try_admit().release()
        for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics:
            print(metric.name, *sorted({{point.attributes["gate"] for point in metric.data.data_points}}))
    """
    assert set(output_of(script).splitlines()) == {
        "tidegate.requests after before",
        "tidegate.permits.in_use after before",
        "tidegate.permits.limit after before",
        "tidegate.permit.duration after",
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_instrumented_before_a_fork_a_gate_is_collected_by_the_childs_provider() -> None:
    """Gunicorn with --preload: the gate and ``instrument`` in the parent, the provider in each worker."""
    script = """
        import os
        from opentelemetry.metrics import set_meter_provider
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from tidegate import Gate
        from tidegate.otel import instrument

        gate = Gate("db", 3, timing=True)
        instrument(gate)
        gate.try_admit().release()
        for worker in range(2):
            if os.fork() == 0:
                reader = InMemoryMetricReader()
                set_meter_provider(MeterProvider([reader]))
                for _ in range(worker + 2):
                    gate.try_admit().release()
                metrics = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
                points = {metric.name: metric.data.data_points for metric in metrics}
                requests = sum(point.value for point in points["tidegate.requests"])
                print(requests, points["tidegate.permit.duration"][0].count, flush=True)
                os._exit(0)
            os.wait()
    """
    assert output_of(script).splitlines() == ["2 2", "3 3"]


def test_a_provider_that_was_used_before_it_became_the_global_one() -> None:
    script = """
        from opentelemetry.metrics import set_meter_provider
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from tidegate import Gate
        from tidegate.otel import instrument

        reader = InMemoryMetricReader()
        provider = MeterProvider([reader])
        instrument(Gate("before", 1), provider)
        set_meter_provider(provider)
        instrument(Gate("after", 1))
        for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics:
            print(metric.name, *sorted({point.attributes["gate"] for point in metric.data.data_points}))
    """
    assert set(output_of(script).splitlines()) == {
        "tidegate.requests after before",
        "tidegate.permits.in_use after before",
        "tidegate.permits.limit after before",
    }
