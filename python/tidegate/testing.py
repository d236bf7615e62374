"""For tests of code that uses a gate: one that is full, one that must be empty, a clock that is set by hand.

With pytest, the fixture ``tidegate_gate`` has all of it.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

from tidegate._names import Outcome, Priority
from tidegate._native import Gate, ManualClock, Permit, Stats

__all__ = ["ManualClock", "assert_at_rest", "full"]

_TICK = 0.001  # seconds


@contextmanager
def full(gate: Gate) -> Generator[None]:
    """Everything asked of the gate inside the block is shed, as by a gate that is full.

    It takes all the room that there is, so that the Shed says what it says in production. Others may hold
    permits of the gate and give them back meanwhile: that makes no room. Dry run is off inside the block.
    Afterwards limit, dry run and room are what they were. Counted are the sheds, and one admission.

    Args:
        gate: The gate, which may be in use by other threads.
    """
    limit, enforce = gate.limit, gate.enforce
    gate.set_enforce(True)
    permit = _all_room(gate)
    # What others give back would be room, so the limit goes down by what they hold. Where they hold
    # everything there is nothing to take, and the limit is 0: a Shed then says that no retry can succeed.
    lowered = permit.weight if permit else 0
    if lowered < limit:
        gate.set_limit(lowered, cause="tidegate.testing.full")
    try:
        yield
    finally:
        if lowered < limit and gate.limit == lowered:  # unless the block has set another
            gate.set_limit(limit, cause="tidegate.testing.full")
        if permit:
            permit.release(Outcome.IGNORE)
        gate.set_enforce(enforce)


def assert_at_rest(gate: Gate, *, since: Stats | None = None, patience: float = 1.0) -> None:
    """Nobody holds a permit, and none was lost.

    A server gives a permit back a moment after its client has the answer, so this waits a little.

    Args:
        gate: The gate.
        since: Its stats from before: what was lost by then is not held against it. None for the beginning.
        patience: Seconds to wait for it to come to rest.

    Raises:
        AssertionError: Something is left. The message says what.
    """
    deadline = time.monotonic() + patience
    while True:
        now = gate.stats()
        left = _left(now, since)
        if not left:
            return
        # What is held may be given back yet; what was lost does not come back.
        if not (now.in_flight or now.over_in_flight) or time.monotonic() >= deadline:
            raise AssertionError(f"gate '{gate.name}' is not at rest: {'; '.join(left)}")
        time.sleep(_TICK)


def _all_room(gate: Gate) -> Permit | None:
    """A permit for all that is free, however others come and go."""
    while not gate.closed:
        room = gate.limit - gate.in_flight
        if room <= 0:
            return None
        permit = gate.try_admit(priority=Priority.CRITICAL_PLUS, weight=room)
        if permit:
            return permit
    return None


def _left(now: Stats, since: Stats | None) -> list[str]:
    """What keeps a gate from being at rest, in words."""
    unmatched = now.unmatched_exits - (since.unmatched_exits if since else 0)
    collected = now.collected - (since.collected if since else 0)
    found = {
        f"{now.in_flight} of {now.limit} in flight: somebody still holds a permit": now.in_flight,
        f"inside beyond the limit, as dry run lets in: {now.over_in_flight}": now.over_in_flight,
        f"exits without an entry: {unmatched} (an __exit__ twice, or without its __enter__)": unmatched,
        f"permits that were garbage-collected, and not released: {collected}": collected,
    }
    return [words for words, count in found.items() if count > 0]
