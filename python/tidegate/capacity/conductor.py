"""Plays the steps that the search asks for, and sees to it that the target survives them.

Before anything else one request alone must be answered. After a step in which the target was overloaded, or
nearly, it is left alone until one request alone is about as fast again. A step in which the generator was
late is played once more.
"""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidegate.capacity import advice
from tidegate.capacity.analysis import End, Measured, Plan, Search, Step, Watch, thinned
from tidegate.capacity.generator import Generator, Now, Played
from tidegate.capacity.journal import Journal
from tidegate.capacity.target import Target, TargetError, as_target_error
from tidegate.demo import arrivals

# So near the highest rate that is allowed that with more of it there might be more answers.
_AT_THE_RATE = 0.9
# A target has recovered when one request alone takes at most so many times as long as at the start.
_RECOVERED = 3.0
_RECOVERY_S = 60.0
_SOON_S = 0.05
_RECOVERY_TIMEOUTS = 10
_MOST_FAILED = 20
_LATENCIES = 2000


@dataclass(frozen=True, slots=True)
class Load:
    """How load is made."""

    arrivals: str = "poisson"
    """Or "even", or "trace"."""
    trace: Sequence[float] | None = None
    seed: int = 1
    most_in_flight: int = 256
    largest_lag: float = 0.02
    """In seconds: with more than this for one in a hundred, nothing is concluded from a step."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A step, and what came of it."""

    step: Step
    measured: Measured
    played: Played | None = None
    """As it was sent. None: it was not, but simulated."""


@dataclass(slots=True)
class Found:
    """All that a run has found so far."""

    search: Search
    taken: list[Taken] = field(default_factory=list[Taken])
    notes: list[str] = field(default_factory=list[str])
    """Sentences about what limits the findings."""
    broken: str | None = None
    """Why it ended before its end."""
    interrupted: bool = False


class Progress(Protocol):
    """Whoever wants to know how far a run is."""

    def begin(self, step: Step, remaining: tuple[int, float]) -> None:
        """A step begins; about so many are left, and seconds."""
        ...

    def now(self, step: Step, now: Now) -> None:
        """How a step is going."""
        ...


class Conductor:
    """Runs a search on a target.

    Args:
        target: What is tested, not open yet.
        plan: What the search is to find.
        load: How load is made.
        journal: What was measured before, and where it is written down.
        progress: Who is told how far it is.
    """

    def __init__(self, target: Target, plan: Plan, load: Load, journal: Journal, progress: Progress) -> None:
        self._target = target
        self._plan = plan
        self._load = load
        self._journal = journal
        self._progress = progress
        self._alone: float | None = None
        self._held: float | None = None
        self._lag_noted: set[bool] = set()
        self._rate_noted = False
        self.found = Found(Search(plan))

    async def conduct(self) -> None:
        """Run until there is nothing left to ask; what is known stands in `found`, however this ends.

        Raises:
            TargetError: The target cannot be tested.
        """
        try:
            await self._target.open()
            most = min(self._load.most_in_flight, self._target.most_in_flight or self._load.most_in_flight)
            generator = Generator(self._target, self._plan.timeout, most, self._plan.max_rate)
            await self._first()
            while (step := self.found.search.next()) is not None:
                await self._take(step, generator)
        except TargetError as error:
            self.found.broken = str(error)
            raise
        finally:
            if self._journal.fault is not None:
                self.found.notes.append(advice.log_incomplete(self._journal.fault))
            await self._target.close()

    # --- one step ------------------------------------------------------------------------------------

    async def _take(self, step: Step, generator: Generator) -> None:
        """Play a step and report it."""
        played = await self._played(step, generator)
        end = self._end(played)
        if end == "lagged":
            played = await self._played(step, generator)
            end = self._end(played)
        measured = as_measured(played, end)
        self._judge(step, played)
        self.found.search.report(step, measured)
        self.found.taken.append(Taken(step, measured, played))
        if end == "held" and step.phase == "ramp":
            self._held = step.rate
        if end == "lagged":
            self._note_lag(step, played)
        self._note_rate(step, played)

    async def _played(self, step: Step, generator: Generator) -> Played:
        played = self._journal.recorded(step)
        if played is not None:
            return played
        self._progress.begin(step, self.found.search.remaining())
        watch = Watch(self._plan.timeout)

        def look(now: Now) -> str | None:
            self._progress.now(step, now)
            counts = now.counts
            if counts.failed >= _MOST_FAILED and counts.failed > counts.good + counts.late:
                return "most of them fail"
            if step.phase not in ("ramp", "before"):
                return None
            return watch.see(
                at=now.at,
                offered=counts.offered,
                good=counts.good,
                late=counts.late,
                failed=counts.failed,
                in_flight=now.in_flight,
            )

        played = await generator.play(
            warm_up=step.warm_up,
            seconds=step.seconds,
            times=None if step.rate is None else schedule(step, self._load),
            limit=step.limit,
            watch=look,
        )
        played.latencies = thinned(played.latencies, _LATENCIES)
        self._journal.record(step, played)
        if played.stopped is not None or played.counts.late:
            await self._recover()
        return played

    def _end(self, played: Played) -> End:
        if played.capped and self._drowning(played):
            return "collapsed" if played.counts.late else "aborted"
        if played.capped or played.lag > self._load.largest_lag:
            return "lagged"
        if played.stopped is not None:
            return "collapsed" if played.counts.late else "aborted"
        return "held"

    def _drowning(self, played: Played) -> bool:
        """Whether those in flight would need more than half a timeout, by Little's law."""
        return played.most_in_flight * played.seconds > played.counts.good * self._plan.timeout / 2

    # --- what a target must not do -------------------------------------------------------------------

    async def _first(self) -> None:
        """One request alone must be answered."""
        answered, failed = await self._one()
        if not answered:
            raise TargetError(advice.first_late(self._plan.timeout))
        if failed is not None:
            raise TargetError(advice.first_failed(failed))

    async def _one(self) -> tuple[bool, str | None]:
        """Ask once: whether there was an answer in time, and how it failed."""
        asking = asyncio.create_task(self._target.ask(0))
        try:
            await asyncio.wait((asking,), timeout=self._plan.timeout)
            if asking.done():
                if (error := asking.exception()) is not None:
                    raise as_target_error(error) from error
                return True, asking.result()
            asking.cancel()
            # It need not heed that at all.
            await asyncio.wait((asking,), timeout=self._plan.timeout)
            return False, None
        finally:
            asking.cancel()

    def _judge(self, step: Step, played: Played) -> None:
        counts = played.counts
        wrong = counts.failed + counts.late
        if step.phase == "baseline":
            if wrong > advice.FAULTS * counts.offered:
                raise TargetError(
                    advice.faults("one at a time", played.failures, counts.late, counts.offered)
                )
            if played.latencies:
                self._alone = statistics.median(played.latencies)
                if advice.too_fast(self._alone, self._target.overhead):
                    raise TargetError(advice.too_fast_to_tell(self._alone))
        elif step.phase == "ramp" and self._held is None and counts.late == 0 and played.latencies:
            slow = statistics.median(played.latencies) > _RECOVERED * (self._alone or 0.0)
            if counts.failed > advice.FAULTS * counts.offered and not slow:
                raise TargetError(advice.faults("at the lowest rate", played.failures, 0, counts.offered))

    async def _recover(self) -> None:
        """Wait until one request alone is about as fast as at the start."""
        if self._alone is None:
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        failed = None
        allowed = max(_RECOVERY_TIMEOUTS * self._plan.timeout, _RECOVERY_S)
        while loop.time() - began < allowed:
            asked = loop.time()
            answered, failed = await self._one()
            fast = loop.time() - asked <= max(_RECOVERED * self._alone, _SOON_S)
            if answered and failed is None and fast:
                return
            await asyncio.sleep(min(self._alone, 1.0))
        raise TargetError(advice.not_recovered(allowed, self._alone, failed))

    def _note_rate(self, step: Step, played: Played) -> None:
        most = self._plan.max_rate
        if step.rate is not None or most is None or played.seconds <= 0 or self._rate_noted:
            return
        if played.counts.offered > _AT_THE_RATE * most * played.seconds:
            self._rate_noted = True
            self.found.notes.append(advice.capped_rate(most))

    def _note_lag(self, step: Step, played: Played) -> None:
        # Once: in a search that goes on, the column `end` says of which other steps it is true as well.
        if step.rate is None or played.capped in self._lag_noted:
            return
        self._lag_noted.add(played.capped)
        self.found.notes.append(
            advice.capped_in_flight(step.rate, played.most_in_flight)
            if played.capped
            else advice.faster_than_generator(step.rate, self._held, played.lag)
        )


def as_measured(played: Played, end: End) -> Measured:
    """What the analysis wants to know of a step."""
    counts = played.counts
    return Measured(
        seconds=played.seconds,
        offered=counts.offered,
        shed=counts.shed,
        good=counts.good,
        late=counts.late,
        failed=counts.failed,
        in_flight=played.in_flight,
        latencies=played.latencies,
        end=end,
    )


def schedule(step: Step, load: Load) -> Iterable[float]:
    """When to send in a step, in seconds from its beginning; the same for the same seed and step."""
    assert step.rate is not None
    if step.rate == 0:
        return ()
    length = step.warm_up + step.seconds
    rng = random.Random(f"{load.seed} {step.number}")  # noqa: S311
    if load.arrivals == "even":
        return _even(step.rate, length)
    if load.trace is not None:
        return arrivals.segment(load.trace, step.rate, length, rng)
    return arrivals.poisson(step.rate, length, rng)


def _even(per_s: float, seconds: float) -> Iterator[float]:
    for number in range(int(per_s * seconds)):
        yield number / per_s
