"""The users: they come when the schedule says, wait so long and no longer, and keep the time.

A stopwatch starts at the moment an attempt was *meant* to start. If this process is slow to start it, the
delay is in the user's latency, and apart from it in `lag`, by which a run is judged valid or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Protocol

from tidegate.demo.arrivals import Arrival

# Seconds between the start of a window's clock being set and its first users: time to get going.
_RUN_UP = 0.05


class Outcome(StrEnum):
    """How an attempt ended, as its user saw it."""

    GOOD = "good"
    LATE = "late"
    SHED = "shed"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request by one user. Times in seconds."""

    essential: bool
    outcome: Outcome
    latency: float
    """From the intended start to the answer, or to giving up."""
    ended: float
    """After the start of the window."""
    lag: float
    """How much later than intended it was sent."""


class Backend(Protocol):
    """Who answers to `NUMBER CONVERSATION ESSENTIAL`: `NUMBER ok` or `NUMBER shed`, in any order."""

    def send(self, line: bytes) -> None:
        """Ask, without waiting for the answer."""
        ...

    async def receive(self) -> bytes:
        """The next answer."""
        ...


def retry_at(
    user: Arrival, made: int, started: float, outcome: Outcome, patience: float, window: float
) -> float | None:
    """When the user tries again after attempt number `made` (from 1), or None if never.

    Who waited in vain tries again after a pause, as long as pauses are left. Who was told to come back later
    does so another day. Nobody starts anything after the window's end.
    """
    if outcome is not Outcome.LATE or made > len(user.pauses):
        return None
    at = started + patience * (1 + user.pauses[made - 1])
    return at if at < window else None


async def play(
    backend: Backend,
    arrivals: Sequence[Arrival],
    window: float,
    patience: float,
    numbers: Iterator[int] | None = None,
) -> list[Attempt]:
    """Send all users of one window; returns when the last has an answer or has given up.

    Args:
        backend: Who answers.
        arrivals: The users, in the order of their coming.
        window: How long users come, in seconds.
        patience: How long each waits for an answer, in seconds.
        numbers: What to call the attempts, where the backend has been asked before and may still answer.
    """
    crowd = _Crowd(backend, window, patience, count() if numbers is None else numbers)
    listener = asyncio.create_task(crowd.listen())
    try:
        await crowd.send_all(arrivals)
        if listener.done():
            listener.result()
    finally:
        listener.cancel()
        await asyncio.wait([listener])  # until it is gone: the next may listen then
    return crowd.attempts


class _Crowd:
    def __init__(self, backend: Backend, window: float, patience: float, numbers: Iterator[int]) -> None:
        self.attempts: list[Attempt] = []
        self._backend = backend
        self._window = window
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time() + _RUN_UP
        self._numbers = numbers
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}

    async def listen(self) -> None:
        """Hand each answer to the user who waits for it, if one still does."""
        while True:
            number, answer = (await self._backend.receive()).split()
            self._settle(int(number), Outcome.GOOD if answer == b"ok" else Outcome.SHED)

    async def send_all(self, arrivals: Sequence[Arrival]) -> None:
        """Start each user on time, and wait for the last to be done."""
        async with asyncio.TaskGroup() as users:
            for user in arrivals:
                await self._until(user.at)
                users.create_task(self._visit(user))

    async def _visit(self, user: Arrival) -> None:
        at = user.at
        for made in count(1):
            outcome = await self._attempt(user, at)
            again = retry_at(user, made, at, outcome, self._patience, self._window)
            if again is None:
                return
            at = again
            await self._until(at)

    async def _attempt(self, user: Arrival, at: float) -> Outcome:
        number = next(self._numbers)
        answer: asyncio.Future[Outcome] = self._loop.create_future()
        self._waiting[number] = answer
        lag = self._now() - at
        self._backend.send(b"%d %d %d" % (number, user.conversation, user.essential))
        giving_up = self._loop.call_at(self._start + at + self._patience, self._settle, number, Outcome.LATE)
        outcome = await answer
        giving_up.cancel()
        ended = self._now()
        self.attempts.append(Attempt(user.essential, outcome, ended - at, ended, lag))
        return outcome

    def _settle(self, number: int, outcome: Outcome) -> None:
        answer = self._waiting.pop(number, None)
        if answer is not None:
            answer.set_result(outcome)

    async def _until(self, at: float) -> None:
        # A sleep of nothing still lets answers in, so a schedule that is behind cannot starve them.
        await asyncio.sleep(max(0.0, at - self._now()))

    def _now(self) -> float:
        return self._loop.time() - self._start
