"""The arm that is given no limit: watched while it looks for one, then played in turns with a given one.

What it has found must last, so its process serves all of its windows at a load. So does that of the other
side, which has nothing to remember but is to have no advantage.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import count

from tidegate.demo import history
from tidegate.demo.arrivals import Arrival
from tidegate.demo.child import Child
from tidegate.demo.doors import AUTO
from tidegate.demo.history import History
from tidegate.demo.report import Auto, Essential, Move, Row, good_per_s, summarise, time_to
from tidegate.demo.users import Attempt, Outcome, play

# Below it nobody is turned away for long, and there is nothing to find.
LEAST_LOAD = 2.0

# Steps of the progress bar at each load.
PAIRS = 5
STEPS = 2 + 2 * PAIRS

# How long it is watched while it looks, in cells.
_SEARCH_CELLS = 5

# What counts as found: the share of the other side's good answers that is demanded in the end, too.
ENOUGH = 0.95

_FIXED = "tidegate"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where it is played."""

    seconds: float
    """Of a cell."""
    timeout: float
    best_per_s: float
    users: Callable[[float, int], Sequence[Arrival]]
    """Those of a window of so many seconds, for this occasion."""
    backend: Callable[[str], AbstractAsyncContextManager[Child]]
    """The process of an arm."""
    step: Callable[[str], None]
    """Names what begins."""
    played: Callable[[str, Sequence[Attempt]], None]
    """Takes note of what an arm's users did."""


async def find(load: float, stage: Stage) -> tuple[Row, Auto]:
    """Play the arm at one load: its row beside those of the others, and what its limit came to."""
    async with stage.backend(AUTO) as auto, stage.backend(_FIXED) as fixed:
        numbers = count()

        async def attempts(arm: str, window: float, occasion: int) -> list[Attempt]:
            backend = auto if arm == AUTO else fixed
            made = await play(backend, stage.users(window, occasion), window, stage.timeout, numbers)
            stage.played(arm, made)
            return made

        clock = asyncio.get_running_loop().time
        began = clock()
        stage.step(f"{load:g}x load, {AUTO}: looking for a limit")
        search_seconds = _SEARCH_CELLS * stage.seconds
        search = await attempts(AUTO, search_seconds, PAIRS + 1)
        stage.step(f"{load:g}x load, {AUTO}")
        cell = await attempts(AUTO, stage.seconds, 0)
        rates: dict[str, list[float]] = {AUTO: [], _FIXED: []}
        window = stage.seconds / 2
        after = [*cell]
        for pair in range(1, PAIRS + 1):
            for arm in (_FIXED, AUTO) if pair % 2 else (AUTO, _FIXED):
                stage.step(f"pair {pair} of {PAIRS} at {load:g}x load, {arm}")
                made = await attempts(arm, window, pair)
                rates[arm].append(good_per_s(made, window))
                if arm == AUTO:
                    after += made
        found = await history.ask(auto)
        moves = _moves(found, clock() - began)
    ratios = [
        ours / theirs if theirs else 0.0 for ours, theirs in zip(rates[AUTO], rates[_FIXED], strict=True)
    ]
    return (
        summarise(load, AUTO, cell, stage.seconds, stage.best_per_s),
        Auto(
            load=load,
            pairs=PAIRS,
            goodput_ratio=statistics.median(ratios),
            essential=_essential(after),
            searched=search_seconds,
            time_to_95=time_to(search, ENOUGH * statistics.median(rates[_FIXED]), window),
            limit=found.limit,
            moves=moves,
        ),
    )


def _moves(found: History, now: float) -> list[Move]:
    """Seen from the first user's coming."""
    return [
        Move(round(max(0.0, now - change.ago), 3), change.limit, change.cause) for change in found.changes
    ]


def _essential(attempts: Sequence[Attempt]) -> Essential:
    outcomes = [attempt.outcome for attempt in attempts if attempt.essential]
    return Essential(len(outcomes), outcomes.count(Outcome.GOOD))
