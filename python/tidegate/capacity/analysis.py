"""The capacity test as it is decided, in the Rust core (`src/capacity`): what to do next, and what it says.

Times are seconds, rates are a second. Whoever drives a target asks a `Search` for the next `Step`, does it,
reports what was `Measured`, and asks again; while a stage of the ramp runs, a `Watch` says when to stop it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from tidegate import _native
from tidegate._errors import ConfigError

Phase: TypeAlias = Literal["baseline", "ramp", "sweep", "before", "proof", "accept"]
End: TypeAlias = Literal["held", "collapsed", "aborted", "lagged"]

CONFIDENCE = 0.95
"""How sure a bound is, unless something else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a capacity test is told.

    Raises:
        ConfigError: From `Search`, where a value breaks a rule.
    """

    timeout: float
    """What an answer may take."""
    stage: float | None = None
    """For how long a stage of the ramp is measured, after its warm-up; four timeouts."""
    cell: float | None = None
    """For how long a limit of the sweep is measured, after its warm-up; four timeouts."""
    warm_up: float | None = None
    """What passes before anything counts; one timeout."""
    start_rate: float | None = None
    """The first rate of the ramp; twice what one alone does."""
    rates: Sequence[float] = ()
    """The rates of the ramp, rising, instead of doubling; 0 is a pause."""
    bisect: bool = True
    """Whether to narrow the breaking point down."""
    max_rate: float | None = None
    """The highest rate that may be offered where no gate stands before the target, or accepted."""
    max_limit: int = 512
    """The highest limit that the sweep may try."""
    overload: float = 1.6
    """How many times the breaking point is offered to the gate."""
    width: float = 0.12
    """How far apart the ends of the breaking point may be, as a share of the lower one."""
    essential: float | None = None
    """The share of requests that are essential."""
    accept: float | None = None
    """The rate that is to be sustained behind the gate."""
    before: bool = False
    """Whether to offer the overload without a gate, too."""
    prove: bool = True
    """Whether to prove what is recommended."""
    seed: int = 1
    """Of the bootstrap."""


@dataclass(frozen=True, slots=True)
class Step:
    """What to do: offer so much for so long, from an empty system on."""

    number: int
    """From 1."""
    phase: Phase
    """What it is for."""
    rate: float | None
    """Arrivals a second, on a schedule that waits for nobody. None: a closed loop, as many as the limit."""
    limit: int | None
    """Of the gate. None: there is none."""
    warm_up: float
    """Seconds before anything counts."""
    seconds: float
    """Seconds after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a step saw after its warm-up; of one that was stopped before, since its start."""

    seconds: float
    """For how long."""
    offered: int
    """How many came."""
    shed: int = 0
    """Of these, turned away by the gate."""
    good: int = 0
    """Answered in time."""
    late: int = 0
    """Not answered in time."""
    failed: int = 0
    """Answered with an error."""
    in_flight: float = 0.0
    """How many were inside on average."""
    latencies: Sequence[float] = field(default=(), repr=False)
    """For how long the good ones took: all, or `thinned`."""
    end: End = "held"
    """How it ended: for its time, stopped when requests failed, stopped before that, or by a generator that
    could not keep the rate, which says nothing of the target."""


@dataclass(frozen=True, slots=True)
class Law:
    """The universal scalability law that is closest to what was measured."""

    lambda_: float
    """Answers a second of one alone."""
    sigma: float
    """The share of the work that cannot be done at the same time."""
    kappa: float
    """What each pair costs."""
    intervals: tuple[tuple[float, float], ...] | None
    """Where each of the three lies with 95 % confidence."""
    covariance: tuple[tuple[float, ...], ...]
    """How they vary together."""
    fits: bool
    """Whether it is near all that was measured; else the limit is read from the points."""


@dataclass(frozen=True, slots=True)
class Level:
    """A throughput, and where it lies with 95 % confidence."""

    concurrency: float
    throughput: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Share:
    """A share that was counted."""

    rate: float | None
    """At so many a second."""
    limit: int | None
    """Behind a gate with this limit."""
    events: int
    of: int
    share: float
    upper: float
    """It may be up to this, with 95 % confidence."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """A threshold that keeps room for what is essential."""

    share: float
    """The share of the requests that is essential."""
    rate: float
    """Under so many a second in all."""
    threshold: int
    """Others enter only while fewer are inside."""
    fraction: float
    """The same as a fraction of the limit."""
    essential_shed: float
    """The share of the essential ones that is shed."""
    other_shed: float
    """The share of the others that is shed."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What a capacity test recommends. What is not known is None, and `reasons` say why."""

    timeout: float
    """What an answer may take, in seconds: the objective of the recommended gate."""
    breaking_point: tuple[float | None, float | None]
    """The highest rate that held without a gate, and the lowest that did not."""
    limit: int | None
    """How many to let in at a time."""
    limit_interval: tuple[int, int] | None
    """Where it lies with 95 % confidence."""
    rate: float | None
    """Up to this rate the limit turns away at most one in a hundred."""
    rate_interval: tuple[float, float] | None
    """Where it lies with 95 % confidence."""
    c95: int | None
    """The smallest limit that has 95 % of the best throughput."""
    c_timeout: int | None
    """The largest limit at which all but 1 in 200 are answered in time."""
    best: tuple[int, float] | None
    """The limit with the best throughput of those measured, and that."""
    slowest_alone: float | None
    """What all but 1 in 200 take at most, alone."""
    law: Law | None
    """The law that is closest to what was measured."""
    band: tuple[Level, ...]
    """Throughput by concurrency, as the recommendation has it."""
    points: tuple[Level, ...]
    """The same as measured."""
    proof: Share | None
    """Those let in under overload behind the recommended gate that were late or failed."""
    before: Share | None
    """The same without a gate."""
    acceptance: Share | None
    """All that came at the rate that was to be accepted and were turned away, late or failed."""
    error_upper: float | None
    """The share of those let in that may fail under overload, with 95 % confidence."""
    gated_error: float | None
    """The share that did."""
    accepted: bool | None
    """Whether the rate that was asked for is sustained."""
    thresholds: Reserved | None
    """A threshold that keeps room for what is essential."""
    complete: bool
    """Whether there is nothing more to do."""
    reasons: tuple[str, ...]
    """Why something is not known, or not recommended."""
    verdict: str
    """All of it in some sentences."""

    def toml(self, gate: str = "db") -> str | None:
        """A configuration of the recommended gate, with the measured limit as its controller's prior."""
        if self.limit is None:
            return None
        sheddable = None if self.thresholds is None else self.thresholds.fraction
        return _native.capacity_toml(gate, self.limit, self.timeout, sheddable, self.verdict)


class Search:
    """A capacity test under way: what was reported so far says what to do next, and nothing else does."""

    def __init__(self, plan: Plan) -> None:
        """Begin a test.

        Args:
            plan: What it is told.

        Raises:
            ConfigError: A value breaks a rule.
        """
        self.plan = plan
        given: dict[str, Any] = {each.name: getattr(plan, each.name) for each in fields(plan)}
        for name, value in given.items():
            if name not in ("rates", "bisect", "before", "prove") and value is not None:
                _check_number(name, value, whole=name in ("max_limit", "seed"))
        given["rates"] = [_check_number("each of rates", rate) for rate in plan.rates]
        try:
            self._core = _native.CapacitySearch(**given)
        except OverflowError as error:
            raise ConfigError(f"max_limit and seed must be whole numbers in their ranges: {error}") from error

    def next(self) -> Step | None:
        """What to do next, the same until it is reported; None where everything is known that will be."""
        step = self._core.next()
        return None if step is None else Step(*step)

    def report(self, step: Step, measured: Measured) -> None:
        """Take down what a step saw.

        Args:
            step: The one that `next` asked for.
            measured: What it saw.

        Raises:
            ConfigError: It is another step than was asked for, or a value breaks a rule. Nothing changes.
        """
        asked = self.next()
        if step != asked:
            raise ConfigError(f"a report must be of the step that was asked for, {asked}, got {step}")
        self._core.report(_as_tuple(measured))

    def remaining(self) -> tuple[int, float]:
        """How many steps are left, and how many seconds they take, if it goes as it usually does."""
        return self._core.outlook()

    def recommendation(self) -> Recommendation:
        """What is recommended by all that was reported so far."""
        return _recommendation(json.loads(self._core.recommendation()))


class Watch:
    """Looks at one stage of the ramp, from its start on."""

    def __init__(self, timeout: float) -> None:
        """Begin to look.

        Args:
            timeout: What an answer may take, in seconds.

        Raises:
            ConfigError: It is none.
        """
        self._core = _native.CapacityWatch(float(_check_number("timeout", timeout)))
        self.end: End = "held"
        """How the stage ends, as far as it was looked at."""

    def see(
        self, *, at: float, offered: int, good: int, late: int = 0, failed: int = 0, in_flight: int
    ) -> str | None:
        """Take note of what was counted since the stage began, `at` seconds ago.

        Returns:
            Why the stage should be stopped now, or None.
        """
        found = self._core.see(at, offered, good, late, failed, in_flight)
        if found is None:
            return None
        bad, why = found
        self.end = "collapsed" if bad else "aborted"
        return why


class SimulatedTarget:
    """A target in virtual time, with the real gate."""

    def __init__(
        self,
        *,
        lambda_: float,
        sigma: float,
        kappa: float,
        service: str,
        cv: float,
        timeout: float,
        seed: int,
    ) -> None:
        """Describe it.

        Args:
            lambda_: Answers a second of one alone.
            sigma: The share of the work that cannot be done at the same time.
            kappa: What each pair costs.
            service: How service times vary: lognormal, exponential, deterministic or hyperexponential.
            cv: Their coefficient of variation, where it is not given by that.
            timeout: How long clients wait, in seconds.
            seed: Of everything left to chance.

        Raises:
            ConfigError: There is no such service.
        """
        self._core = _native.CapacitySimulated(lambda_, sigma, kappa, service, cv, timeout)
        self._seed = seed

    def run(self, step: Step) -> Measured:
        """Take a step.

        Raises:
            ConfigError: A value of the target is outside its range.
        """
        given = (step.number, step.phase, step.rate, step.limit, step.warm_up, step.seconds)
        seen: dict[str, Any] = dict(zip(_MEASURED, self._core.run(given, self._seed), strict=True))
        return Measured(**seen)


def error_upper(events: int, of: int, confidence: float = CONFIDENCE) -> float:
    """The largest share that `events` of `of` leave possible, exactly (Clopper and Pearson, 1934)."""
    return _native.capacity_upper(events, of, confidence)


def sample_size(failures: int, share: float = 0.01, confidence: float = CONFIDENCE) -> int | None:
    """How many are needed for a bound below `share`, of whom `failures` may fail; None beyond 10^9."""
    return _native.capacity_sample_size(failures, share, confidence)


def thinned(latencies: Iterable[float], most: int = 500) -> list[float]:
    """All of them in order, or as many quantiles at equal distances."""
    ordered = sorted(latencies)
    count = len(ordered)
    if count <= most:
        return ordered
    return [ordered[math.floor((at + 0.5) * count / most)] for at in range(most)]


_MEASURED = tuple(each.name for each in fields(Measured))


def _check_number(name: str, value: object, *, whole: bool = False) -> float | int:
    if whole and type(value) is int:
        return value
    if not whole and type(value) in (int, float):
        return value  # type: ignore[return-value]  # one of the two
    kind = "a whole number" if whole else "a number"
    raise ConfigError(f"{name} must be {kind}, got {value!r}")


def _as_tuple(measured: Measured) -> tuple[Any, ...]:
    for name in ("offered", "shed", "good", "late", "failed"):
        count = getattr(measured, name)
        if type(count) is not int or not 0 <= count < 2**63:
            raise ConfigError(f"{name} must be a whole number, 0 or more, got {count!r}")
    for name in ("seconds", "in_flight"):
        _check_number(name, getattr(measured, name))
    for latency in measured.latencies:
        _check_number("each of latencies", latency)
    return tuple(getattr(measured, name) for name in _MEASURED)


def _recommendation(found: dict[str, Any]) -> Recommendation:
    for name in ("breaking_point", "limit_interval", "rate_interval", "best", "reasons"):
        if found[name] is not None:
            found[name] = tuple(found[name])
    for name in ("band", "points"):
        found[name] = tuple(Level(**level) for level in found[name])
    for name in ("proof", "before", "acceptance"):
        if found[name] is not None:
            found[name] = Share(**found[name])
    if found["thresholds"] is not None:
        found["thresholds"] = Reserved(**found["thresholds"])
    if (law := found["law"]) is not None:
        intervals = law["intervals"]
        found["law"] = Law(
            lambda_=law["lambda"],
            sigma=law["sigma"],
            kappa=law["kappa"],
            intervals=None if intervals is None else tuple((low, high) for low, high in intervals),
            covariance=tuple(tuple(row) for row in law["covariance"]),
            fits=law["fits"],
        )
    return Recommendation(**found)
