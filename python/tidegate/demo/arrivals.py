"""When users come: schedules that wait for nobody's answer."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path

from tidegate.demo.corpus import CONVERSATIONS

ESSENTIAL_SHARE = 0.1
MAX_RETRIES = 2

# Of how long they waited in vain.
PAUSES = (0.1, 0.5)

_SHIPPED_TRACE = "azure-llm-conv-thinned.csv"


class TraceError(Exception):
    """A trace file that cannot be used."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One user. Everything about them is drawn beforehand, so that all arms meet the same users."""

    at: float
    """Seconds after the start."""
    conversation: int
    essential: bool
    pauses: tuple[float, ...]
    """How long they pause before each retry, as a fraction of how long they waited in vain."""


def users(
    load: float,
    best_per_s: float,
    seconds: float,
    *,
    seed: int,
    trace: Sequence[float] | None = None,
    occasion: int = 0,
) -> list[Arrival]:
    """The users of one window: they depend on nothing else, so that whoever asks again gets the same.

    Args:
        load: How many come, as a multiple of `best_per_s`.
        best_per_s: How many the database can answer.
        seconds: How long they come.
        seed: Of all chance.
        trace: Arrival times to follow. None: Poisson arrivals.
        occasion: Which of the windows at this load.
    """
    rng = random.Random(f"{seed} {float(load)} {occasion}")  # noqa: S311
    per_s = load * best_per_s
    times = poisson(per_s, seconds, rng) if trace is None else segment(trace, per_s, seconds, rng)
    return populate(times, rng)


def populate(times: Iterable[float], rng: random.Random) -> list[Arrival]:
    """A user for each arrival time."""
    return [
        Arrival(
            at=at,
            conversation=rng.randrange(CONVERSATIONS),
            essential=rng.random() < ESSENTIAL_SHARE,
            pauses=tuple(rng.uniform(*PAUSES) for _ in range(MAX_RETRIES)),
        )
        for at in times
    ]


def poisson(per_s: float, seconds: float, rng: random.Random) -> Iterator[float]:
    """Arrival times within `seconds` of users who know nothing of each other."""
    at = rng.expovariate(per_s)
    while at < seconds:
        yield at
        at += rng.expovariate(per_s)


def segment(trace: Sequence[float], per_s: float, seconds: float, rng: random.Random) -> Iterator[float]:
    """As many consecutive arrivals of the trace as the load asks for, fitted to `seconds`.

    They start at a random place. The trace's bursts and lulls stay; only its clock runs faster. It is a ring,
    so that no load is too much for it.
    """
    count = max(1, round(per_s * seconds))
    gaps = [later - earlier for earlier, later in pairwise(trace)]
    first = rng.randrange(len(gaps))
    chosen = [gaps[(first + n) % len(gaps)] for n in range(count)]
    scale = seconds / sum(chosen)
    return (since * scale for since in accumulate(chosen[:-1], initial=0.0))


def read_trace(path: Path | None = None) -> list[float]:
    """Arrival times in seconds, in order, from the first column of a CSV file.

    Without a path it is the shipped trace. Times are numbers (seconds) or ISO 8601 timestamps. A first line
    that is neither is a heading.
    """
    try:
        text = (files("tidegate.demo") / "data" / _SHIPPED_TRACE if path is None else path).read_text(
            "utf-8-sig"
        )
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"cannot read trace {path}: {error}") from error
    cells = [row[0].strip() for row in csv.reader(text.splitlines()) if row]
    if cells and not _is_time(cells[0]):
        del cells[0]
    try:
        times = sorted(_seconds(cell) for cell in cells)
    except ValueError as error:
        raise TraceError(f"trace {path} is not a list of times: {error}") from error
    if len(times) < 2 or times[0] == times[-1]:
        raise TraceError(f"trace {path} holds fewer than two different arrival times")
    return times


def _is_time(cell: str) -> bool:
    try:
        _seconds(cell)
    except ValueError:
        return False
    return True


def _seconds(cell: str) -> float:
    try:
        seconds = float(cell)
    except ValueError:
        moment = datetime.fromisoformat(cell)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds):
        raise ValueError(f"{cell!r} is no time")
    return seconds
