"""Metrics of gates through OpenTelemetry (``pip install tidegate[otel]``).

Counts and gauges are observed: read from the gate's own counters when metrics are collected, exact, at no
cost to requests. Only the durations of permits are recorded as they end.
"""

from __future__ import annotations

from contextlib import ExitStack
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from opentelemetry.metrics import MeterProvider, Observation, get_meter_provider

import tidegate
from tidegate._errors import ConfigError
from tidegate._native import sums_here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.metrics import CallbackOptions, Meter

    from tidegate._native import Event, Gate, GateSum

__all__ = ["DURATION_BUCKETS", "instrument"]

DURATION_BUCKETS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
"""The bounds in seconds that ``tidegate.permit.duration`` advises; a view of yours has its own."""


def instrument(gate: Gate, meter_provider: MeterProvider | None = None) -> Callable[[], None]:
    """Have a gate's metrics collected.

    - ``tidegate.requests``, a counter: every attempt, once, by ``gate``, ``priority``, ``outcome``
      ("admitted", "shed", in dry run "would_shed") and, of what was shed, ``reason``.
    - ``tidegate.permits.in_use``, an up-down counter: the weight in flight, by ``gate``.
    - ``tidegate.permits.limit``, an up-down counter: the limit, by ``gate``.
    - ``tidegate.limit.changes``, a counter: how often the limit was changed, by ``gate`` and ``cause``.
    - ``tidegate.pressure``, a gauge: the pressure level of gates with signals, 0 to 1, by ``gate``, as of
      the last request that looked at them; 0 where that is more than five seconds ago.
    - ``tidegate.permit.duration``, a histogram in seconds, by ``gate`` and ``outcome`` ("success",
      "overload", "ignore"): of gates with ``timing=True``, and there of permits and ``guard``, not of bare
      blocks.

    Gates of the same name are added up. A gate is kept alive while it is instrumented; one that was closed
    has no limit, and nothing in use once it is empty.

    Args:
        gate: The gate.
        meter_provider: The provider to collect through; if not given the global one, which may be set later.

    Returns:
        What ends this when called. The gate's series end with it.

    Raises:
        ConfigError: The gate is instrumented with this provider already.
    """
    instruments = _instruments_of(meter_provider)
    with _registering:
        if gate in instruments.gates:
            raise ConfigError(f"a gate is instrumented once for each meter provider, got {gate.name!r} again")
        instruments.gates[gate] = None
    ending = ExitStack()
    ending.callback(instruments.gates.pop, gate)
    if gate.stats().occupancy is not None:  # timing is on
        ending.callback(gate.subscribe(instruments.record, ["released"]))
    return ending.close  # closed again, it has nothing left to do


class _Instruments:
    """The instruments of one provider, which all its gates share.

    An instrument keeps the callbacks that it was made with, and cannot be given more or be rid of them: so
    what they observe is a list of gates that grows and shrinks.
    """

    def __init__(self, meter: Meter) -> None:
        self.gates: dict[Gate, None] = {}
        meter.create_observable_counter(
            "tidegate.requests", [self._requests], "{request}", "Requests to enter a gate, and their outcome"
        )
        meter.create_observable_up_down_counter(
            "tidegate.permits.in_use", [self._in_use], "{permit}", "Weight in flight"
        )
        meter.create_observable_up_down_counter(
            "tidegate.permits.limit", [self._limit], "{permit}", "Most weight that may be in flight"
        )
        meter.create_observable_counter(
            "tidegate.limit.changes", [self._changes], "{change}", "Changes of the limit, and their cause"
        )
        meter.create_observable_gauge("tidegate.pressure", [self._pressure], "1", "Pressure level")
        self._duration = meter.create_histogram(
            "tidegate.permit.duration",
            "s",
            "How long permits were held",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )

    def record(self, event: Event) -> None:
        """A permit has ended."""
        if event.duration is not None and event.outcome is not None:
            self._duration.record(event.duration, {"gate": event.gate, "outcome": event.outcome.value})

    def _requests(self, _options: CallbackOptions) -> Iterator[Observation]:
        """Refusals that never happened have no series."""
        for each in sums_here([*self.gates]):
            for priority, outcome, reason, count in each.requests:
                if count or outcome == "admitted":
                    attributes = {"gate": each.gate, "priority": priority, "outcome": outcome}
                    yield Observation(count, {**attributes, "reason": reason} if reason else attributes)

    def _in_use(self, _options: CallbackOptions) -> Iterator[Observation]:
        return self._observed(lambda each: each.in_flight)

    def _limit(self, _options: CallbackOptions) -> Iterator[Observation]:
        return self._observed(lambda each: each.limit)

    def _changes(self, _options: CallbackOptions) -> Iterator[Observation]:
        for each in sums_here([*self.gates]):
            for cause, count in each.limit_changes:
                yield Observation(count, {"gate": each.gate, "cause": cause})

    def _pressure(self, _options: CallbackOptions) -> Iterator[Observation]:
        return self._observed(lambda each: each.pressure)

    def _observed(self, read: Callable[[GateSum], float | None]) -> Iterator[Observation]:
        for each in sums_here([*self.gates]):
            value = read(each)
            if value is not None:
                yield Observation(value, {"gate": each.gate})


_registering = Lock()
_global: list[_Instruments] = []  # one at most: the global provider can be set once
_by_provider: WeakKeyDictionary[MeterProvider, _Instruments] = WeakKeyDictionary()


def _instruments_of(provider: MeterProvider | None) -> _Instruments:
    """Made once for each provider, since a second instrument of a name would never be observed.

    What is made through the global provider before that is set is handed on to it by OpenTelemetry, so
    the global provider is told by its role and not by its object.
    """
    current = get_meter_provider()
    provider = current if provider is None else provider
    with _registering:
        if provider in _by_provider:
            return _by_provider[provider]
        if provider is current and _global:
            return _global[0]
        instruments = _Instruments(provider.get_meter("tidegate", tidegate.__version__))
        if provider is current:
            _global.append(instruments)
        else:
            _by_provider[provider] = instruments
        return instruments
