"""From measured throughput to the pool's size and the gate's limit. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# What a stock backend has: AnyIO, under FastAPI and Starlette, starts 40 threads.
STOCK_WORKERS = 40

# For a database on another machine, of which nothing is known.
REMOTE_LEVELS = (1, 2, 4, 8, 16, 32)

# A pool size is as good as the best if it reaches this much of the best throughput.
_GOOD_ENOUGH = 0.95

# What is inside should be done within a third of the timeout: a database that slows down to a third of its
# speed then still answers in time. Below the smallest limit, the quarter kept for essential requests is
# hardly a request.
_SHARE_OF_TIMEOUT = 3
_SMALLEST_LIMIT = 8


@dataclass(frozen=True, slots=True)
class Level:
    """Throughput at one concurrency."""

    workers: int
    per_s: float


def levels(processors: int) -> list[int]:
    """The concurrencies to measure on a machine with so many processors.

    The search is nothing but processor time, so a pool more than twice as large as the machine gains only
    what its number takes from other programs; and every thread more makes a refusal wait for a processor.
    """
    return sorted({1, 2, 4, processors, processors * 3 // 2, processors * 2})


def curve(samples: Mapping[int, Sequence[float]]) -> list[Level]:
    """The median of each concurrency's samples, in order of concurrency."""
    return [Level(workers, statistics.median(samples[workers])) for workers in sorted(samples)]


def best_per_s(measured: Sequence[Level]) -> float:
    """The best throughput at any concurrency."""
    return max(level.per_s for level in measured)


def best_workers(measured: Sequence[Level]) -> int:
    """The smallest concurrency that is as good as the best."""
    enough = _GOOD_ENOUGH * best_per_s(measured)
    return min(level.workers for level in measured if level.per_s >= enough)


def little_limit(per_s: float, timeout: float) -> int:
    """Little's law: as many inside as `per_s` answers a second finish within a third of the timeout."""
    return max(_SMALLEST_LIMIT, math.floor(per_s * timeout / _SHARE_OF_TIMEOUT))
