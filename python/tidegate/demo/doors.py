"""The arms. Each is a door in front of the worker pool.

A door is asked before a request is handed to the pool. It answers with what must be called once the work is
done, or with None: come back later. No door ever waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from tidegate import Gate

Leave = Callable[[], object]
Door = Callable[[bool], Leave | None]
"""Is the request essential? Then how it leaves, or None."""


def ungated(_limit: int) -> Door:
    """As backends are by default: everybody may come in."""

    def leave() -> None:
        """Nobody counted, so nobody is missed."""

    return lambda _essential: leave


def semaphore(limit: int) -> Door:
    """A plain counter: at most `limit` inside, whoever comes first."""
    slots = threading.BoundedSemaphore(limit)
    return lambda _essential: slots.release if slots.acquire(blocking=False) else None


def tidegate(limit: int) -> Door:
    """The gate: at most `limit` inside, the last quarter kept for essential requests."""
    return through(Gate("db", limit))


def through(gate: Gate) -> Door:
    """The way through a gate, for essential requests and for others."""

    def enter(essential: bool) -> Leave | None:
        permit = gate.try_admit(priority="critical" if essential else "sheddable")
        return None if permit is None else permit.release

    return enter


ARMS: Mapping[str, Callable[[int], Door]] = {
    "ungated": ungated,
    "stock": ungated,
    "semaphore": semaphore,
    "tidegate": tidegate,
}
"""`stock` differs from `ungated` behind the door: its connection pool is as small as pools are by default."""

AUTO = "auto"
"""The gate that is told nothing but how long users wait. Beside the others: it is played in its own way."""


def auto(timeout: float) -> Gate:
    """A gate that finds its limit."""
    return Gate("db", controller="goodput", objective=timeout)


UNLIMITED = frozenset({"ungated", "stock"})

ARMS_OF: Mapping[str, Sequence[str]] = {
    "sqlite": ("ungated", "semaphore", "tidegate"),
    "postgres": tuple(ARMS),
}
"""Those that make a difference on each kind of database, in the order in which they are played and shown."""
