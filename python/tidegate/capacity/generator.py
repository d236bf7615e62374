"""Load: requests by a schedule, or as many as a gate lets in.

By a schedule (an open loop), every request is sent when it is meant to be, whatever became of those before
it, and its stopwatch starts at that moment: a target that is slow cannot make its users come later, and
neither can this process hide that it was late itself. What it was late by is kept, and judged. (Gil Tene
calls the mistake that this avoids coordinated omission.) With a gate in front, those that it turns away are
not sent.

As many as a gate lets in (a closed loop): whenever one ends the next is admitted, so that as many are in
flight as the gate's limit says, at every moment.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from tidegate import Gate, Permit
from tidegate.capacity import advice
from tidegate.capacity.target import Target, TargetError, as_target_error

_RUN_UP_S = 0.02
# No clock and no timer tell so little.
_NOTHING_S = 1e-6
# How long a step's last requests may take to end, of which all but the last have been given up on.
_LANDING_TIMEOUTS = 3
_LANDING_S = 30.0
_LOOKS_PER_TIMEOUT = 100
_LEAST_BETWEEN_LOOKS_S = 0.1


@dataclass(slots=True)
class Counts:
    """How many so far. What is in none of the others is in flight, or was withdrawn."""

    offered: int = 0
    shed: int = 0
    good: int = 0
    late: int = 0
    failed: int = 0


@dataclass(slots=True)
class Now:
    """A running step, for whoever watches."""

    at: float
    """Seconds since it began."""
    in_flight: int
    counts: Counts


@dataclass(slots=True)
class Played:
    """What came of a step. Counts and latencies are of what was to start after the warm-up."""

    seconds: float
    counts: Counts
    in_flight: float
    """The mean over the seconds."""
    most_in_flight: int
    latencies: list[float]
    """Of the good ones, in order."""
    failures: dict[str, int]
    """How often each kind of failure was seen, the most frequent first."""
    lag: float
    """99 of 100 were sent with no more delay than this, in seconds; 0 in a closed loop."""
    busy: float
    """The share of the time in which this process was at work."""
    stopped: str | None
    """Why it was ended early."""
    capped: bool = False
    """It was ended because no more were allowed in flight."""


@dataclass(slots=True)
class _Flight:
    number: int
    at: float
    lag: float
    permit: Permit | None
    counted: bool
    giving_up: asyncio.TimerHandle | None = None
    settled: bool = False


@dataclass(slots=True)
class _Window:
    """Means over the time after the warm-up, and over all of it."""

    warm_up: float
    in_flight: int = 0
    most: int = 0
    area: float = 0.0
    area_whole: float = 0.0
    last: float = 0.0

    def change(self, at: float, by: int) -> None:
        self.area_whole += self.in_flight * (at - self.last)
        self.area += self.in_flight * max(0.0, at - max(self.last, self.warm_up))
        self.last = at
        self.in_flight += by
        self.most = max(self.most, self.in_flight)


@dataclass(slots=True)
class _Ledger:
    counts: Counts = field(default_factory=Counts)
    latencies: list[float] = field(default_factory=list[float])
    failures: Counter[str] = field(default_factory=Counter[str])
    lags: list[float] = field(default_factory=list[float])


class Generator:
    """Sends load to a target, one step after the other.

    Args:
        target: An open target.
        timeout: How long an answer may take before it is given up on, in seconds.
        most_in_flight: A step is ended when so many are in flight.
        max_rate: A closed loop sends no more than so many a second. None: as many as come back.
    """

    def __init__(
        self, target: Target, timeout: float, most_in_flight: int, max_rate: float | None = None
    ) -> None:
        self._target = target
        self._timeout = timeout
        self._most = most_in_flight
        self._between = 0.0 if max_rate is None else 1 / max_rate
        self._numbers = 0

    async def play(
        self,
        *,
        warm_up: float,
        seconds: float,
        times: Iterable[float] | None,
        limit: int | None,
        watch: Callable[[Now], str | None],
    ) -> Played:
        """Play one step; nothing of it is in flight afterwards.

        Args:
            warm_up: How long it goes before anything counts.
            seconds: How long it goes on then.
            times: When to send, in seconds from the step's beginning. None: a closed loop.
            limit: Of the gate. None: there is none.
            watch: Called again and again; what it says ends the step.

        Raises:
            TargetError: The target broke.
        """
        step = _Step(
            self._target, self._timeout, self._most, self._numbers, warm_up, seconds, limit, self._between
        )
        try:
            return await step.play(times, watch)
        finally:
            self._numbers = step.numbers


class _Step:
    def __init__(
        self,
        target: Target,
        timeout: float,
        most: int,
        numbers: int,
        warm_up: float,
        seconds: float,
        limit: int | None,
        between: float,
    ) -> None:
        self._target = target
        self._timeout = timeout
        self._most = most
        self._between = between
        self._due = 0.0
        self._waiting = False
        self.numbers = numbers
        self._warm_up = warm_up
        self._end = warm_up + seconds
        self._gate = None if limit is None else Gate("capacity", limit)
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time() + _RUN_UP_S
        self._window = _Window(warm_up)
        self._whole = _Ledger()
        self._counted = _Ledger()
        self._flights: dict[asyncio.Task[str | None], _Flight] = {}
        self._landed = asyncio.Event()
        self._closed_loop = False
        self._sending = True
        self._stopped: str | None = None
        self._capped = False
        self._broken: BaseException | None = None
        self._stop = asyncio.Event()

    async def play(self, times: Iterable[float] | None, watch: Callable[[Now], str | None]) -> Played:
        self._closed_loop = times is None
        sending = asyncio.create_task(self._keep_full() if times is None else self._send(times))
        watching = asyncio.create_task(self._watch(watch))
        stopping = asyncio.create_task(self._stop.wait())
        worked = time.process_time()
        try:
            await asyncio.wait((sending, watching, stopping), return_when=asyncio.FIRST_COMPLETED)
            self._sending = False
            ended = max(self._now(), 1e-9)
            self._window.change(ended, 0)
            busy = (time.process_time() - worked) / ended
            mean = self._mean(ended)
            for task in (sending, watching):
                if task.done():
                    task.result()
                task.cancel()
            if self._stopped is not None:
                self._withdraw()
            await self._land()
        finally:
            self._sending = False
            for task in (sending, watching):
                task.cancel()
            stopping.cancel()
            self._withdraw()
            # Whoever is interrupted here does not leave requests behind; the target's process, if it has one,
            # is ended soon, so this is not for ever.
        if self._broken is not None:
            raise self._broken
        return self._played(ended, mean, busy)

    # --- sending -------------------------------------------------------------------------------------

    async def _send(self, times: Iterable[float]) -> None:
        for at in times:
            # A sleep of nothing still lets answers in, so a schedule that is behind cannot starve them.
            await asyncio.sleep(max(0.0, at - self._now()))
            if not self._sending:
                return
            self._offer(at)
        await asyncio.sleep(max(0.0, self._end - self._now()))

    async def _keep_full(self) -> None:
        await asyncio.sleep(max(0.0, -self._now()))
        self._fill()
        await asyncio.sleep(max(0.0, self._end - self._now()))

    def _fill(self) -> None:
        assert self._gate is not None
        while self._sending and not self._waits() and (permit := self._gate.try_admit()) is not None:
            at = self._now()
            self._due = max(self._due, at) + self._between
            self._count(at, 0.0)
            self._start(at, 0.0, permit)

    def _waits(self) -> bool:
        """Whether the next one has to wait for the rate that is kept; then it is seen to."""
        wait = self._due - self._now()
        if wait <= _NOTHING_S:
            return False
        if not self._waiting:
            self._waiting = True
            self._loop.call_later(wait, self._go_on)
        return True

    def _go_on(self) -> None:
        self._waiting = False
        self._fill()

    def _offer(self, at: float) -> None:
        lag = self._now() - at
        self._count(at, lag)
        permit = None
        if self._gate is not None:
            permit = self._gate.try_admit()
            if permit is None:
                for ledger in self._ledgers(at):
                    ledger.counts.shed += 1
                return
        elif self._window.in_flight >= self._most:
            self._capped = True
            self._end_early(f"{self._most} in flight, and no more are allowed")
            return
        self._start(at, lag, permit)

    def _count(self, at: float, lag: float) -> None:
        for ledger in self._ledgers(at):
            ledger.counts.offered += 1
            ledger.lags.append(lag)

    def _ledgers(self, at: float) -> tuple[_Ledger, ...]:
        return (self._whole, self._counted) if at >= self._warm_up else (self._whole,)

    def _start(self, at: float, lag: float, permit: Permit | None) -> None:
        self._window.change(max(self._now(), 0.0), 1)
        flight = _Flight(self.numbers, at, lag, permit, at >= self._warm_up)
        self.numbers += 1
        task = self._loop.create_task(self._target.ask(flight.number))
        self._flights[task] = flight
        flight.giving_up = self._loop.call_at(self._began + at + self._timeout, self._give_up, task, flight)
        task.add_done_callback(partial(self._land_one, flight))

    # --- landing -------------------------------------------------------------------------------------

    def _give_up(self, task: asyncio.Task[str | None], flight: _Flight) -> None:
        self._settle(flight, "late")
        task.cancel()

    def _settle(self, flight: _Flight, outcome: str) -> None:
        if flight.settled:
            return
        flight.settled = True
        for ledger in self._ledgers(flight.at):
            setattr(ledger.counts, outcome, getattr(ledger.counts, outcome) + 1)
            if outcome == "good":
                ledger.latencies.append(self._now() - flight.at)

    def _land_one(self, flight: _Flight, task: asyncio.Task[str | None]) -> None:
        assert flight.giving_up is not None
        flight.giving_up.cancel()
        if task.cancelled():
            flight.settled = True  # withdrawn, unless it was late before
        elif (error := task.exception()) is not None:
            self._broken = self._broken or as_target_error(error)
            self._end_early("the target broke")
        elif (failed := task.result()) is None:
            self._settle(flight, "good")
        else:
            if not flight.settled:
                for ledger in self._ledgers(flight.at):
                    ledger.failures[failed] += 1
            self._settle(flight, "failed")
        if flight.permit is not None:
            flight.permit.release()
        self._window.change(max(self._now(), self._window.last), -1)
        del self._flights[task]
        if not self._flights:
            self._landed.set()
        if self._closed_loop:
            self._fill()

    async def _land(self) -> None:
        patience = max(_LANDING_TIMEOUTS * self._timeout, _LANDING_S)
        self._landed.clear()
        if not self._flights:
            return
        try:
            await asyncio.wait_for(self._landed.wait(), patience)
        except TimeoutError:
            raise TargetError(advice.still_running(len(self._flights), patience)) from None

    def _withdraw(self) -> None:
        for task, flight in self._flights.items():
            flight.settled = True
            task.cancel()

    # --- watching ------------------------------------------------------------------------------------

    async def _watch(self, watch: Callable[[Now], str | None]) -> None:
        pause = max(_LEAST_BETWEEN_LOOKS_S, self._timeout / _LOOKS_PER_TIMEOUT)
        while True:
            await asyncio.sleep(pause)
            counts = self._whole.counts
            reason = watch(Now(self._now(), self._window.in_flight, counts))
            if reason is not None:
                self._end_early(reason)
                return

    def _end_early(self, reason: str) -> None:
        if self._sending:
            self._stopped = reason
            self._sending = False
            self._stop.set()

    # --- the end -------------------------------------------------------------------------------------

    def _mean(self, ended: float) -> float:
        if ended > self._warm_up:
            return self._window.area / (ended - self._warm_up)
        return self._window.area_whole / ended

    def _played(self, ended: float, mean: float, busy: float) -> Played:
        # Ended while it was still warming up: then all of it is all there is.
        early = ended <= self._warm_up
        ledger = self._whole if early else self._counted
        ordered = sorted(ledger.lags)
        return Played(
            seconds=ended if early else ended - self._warm_up,
            counts=ledger.counts,
            in_flight=mean,
            most_in_flight=self._window.most,
            latencies=sorted(ledger.latencies),
            failures=dict(ledger.failures.most_common()),
            lag=ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] if ordered else 0.0,
            busy=busy,
            stopped=self._stopped,
            capped=self._capped,
        )

    def _now(self) -> float:
        return self._loop.time() - self._began
