"""Interrupts at random moments of a checkout: `python interrupts.py HOOK URL ROUNDS SEED`

A real signal raises KeyboardInterrupt wherever the main thread is between before the checkout and after the
return. What a pool loses in such a moment it may lose, even the lock of its queue (an interrupt within
`threading.Condition.__enter__` takes it for ever), and hangs: then another takes its place. A permit may not
be lost. Prints JSON: how many rounds were interrupted, how many permits were left over, how many rounds the
pool failed in otherwise, and how many pools hung at their end.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import random
import signal
import statistics
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from tidegate import Gate, Shed

# Each interrupt may cost a pool a connection, so pools have as many to spare until they are renewed.
RENEWED_AFTER = 50
POOL_SECONDS = 1.0  # for a pool that has lost too many
STUCK_SECONDS = 5.0  # longer than any pool waits
SECONDS = 20.0  # then it has stormed enough
WARM_UP = 20


class StuckError(Exception):
    """It has taken so long that it hangs."""


class Pool(ABC):
    """What is interrupted."""

    @abstractmethod
    def check_out(self) -> None:
        """Check out two connections and return them."""

    @abstractmethod
    def close(self) -> None:
        """Give up what the pool still has."""


class Sqlalchemy(Pool):
    def __init__(self, gate: Gate, url: str) -> None:
        from sqlalchemy import create_engine
        from tidegate.sqlalchemy import gated

        options: dict[str, Any] = {
            "pool_size": 2,
            "max_overflow": RENEWED_AFTER,
            "pool_timeout": POOL_SECONDS,
        }
        self._engine = create_engine(url, **options, **gated(gate))

    def check_out(self) -> None:
        with self._engine.connect(), self._engine.connect():
            pass

    def close(self) -> None:
        self._engine.dispose()


class Psycopg(Pool):
    def __init__(self, gate: Gate, url: str) -> None:
        from tidegate.psycopg import GatedConnectionPool

        options: dict[str, Any] = {"min_size": 2, "max_size": 2 + RENEWED_AFTER, "timeout": POOL_SECONDS}
        self._pool = GatedConnectionPool(gate, url, open=True, **options)
        self._pool.wait()

    def check_out(self) -> None:
        with self._pool.connection(), self._pool.connection():
            pass

    def close(self) -> None:
        self._pool.close(timeout=POOL_SECONDS)


POOLS: dict[str, Callable[[Gate, str], Pool]] = {
    "sqlalchemy-sync": Sqlalchemy,
    "psycopg-pool": Psycopg,
}


class Alarm:
    """A signal at a random moment, which nothing but a function's run can meet; one more if that hangs."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._next: type[BaseException] | None = None
        signal.signal(signal.SIGALRM, self._ring)

    def interrupts(self, function: Callable[[], None], span: float) -> bool:
        """Run the function; whether the signal within `span` seconds ended it."""
        try:
            self._run(function, KeyboardInterrupt, max(1e-6, self._random.uniform(0, span)))
        except KeyboardInterrupt:
            return True
        return False

    def ends(self, function: Callable[[], None]) -> bool:
        """Run the function; whether it ends by itself."""
        try:
            self._run(function, StuckError, STUCK_SECONDS)
        except StuckError:
            return False
        return True

    def _run(self, function: Callable[[], None], error: type[BaseException], after: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, after, STUCK_SECONDS)
        try:
            self._next = error
            function()
            self._next = None
        finally:
            self._next = None
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, *_: object) -> None:
        if self._next is not None:
            error, self._next = self._next, StuckError
            raise error


def seconds_of(function: Callable[[], None]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    """Storm, and print what is left."""
    hook, url, rounds, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    warnings.simplefilter("ignore")  # of what is collected
    logging.disable()  # what interrupted pools say
    sys.unraisablehook = lambda _: None  # interrupts in finalizers

    gate = Gate("db", limit=2)
    pool, alarm = POOLS[hook](gate, url), Alarm(seed)
    for _ in range(WARM_UP):
        pool.check_out()
    span = 1.1 * statistics.median(seconds_of(pool.check_out) for _ in range(WARM_UP))

    interrupted = left = failed = 0
    hung: list[Pool] = []
    until = time.monotonic() + SECONDS
    for n in range(rounds):
        if time.monotonic() >= until:
            break
        broken = n % RENEWED_AFTER == RENEWED_AFTER - 1
        try:
            interrupted += alarm.interrupts(pool.check_out, span)
        except Shed:
            raise
        except Exception:
            failed += 1
            broken = True
        if gate.in_flight:
            gc.collect()
            left = gate.in_flight
            if left:
                break
        if broken:
            if not alarm.ends(pool.close):
                hung.append(pool)  # its finalizer would hang, too
            pool = POOLS[hook](gate, url)
    counts = {"interrupted": interrupted, "left": left, "failed": failed, "hung": len(hung)}
    print(json.dumps(counts), flush=True)
    os._exit(0)  # past the finalizers


if __name__ == "__main__":
    main()
