"""Interrupts at random moments of a checkout: `python interrupts.py HOOK URL ROUNDS SEED`

A real signal raises KeyboardInterrupt wherever the main thread is between before the checkout and after the
return. What a pool loses in such a moment it may lose; a permit may not be lost. Prints JSON: how many rounds
were interrupted, how many permits were left over, and how many rounds the pool failed in otherwise.
"""

from __future__ import annotations

import gc
import json
import logging
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
WARM_UP = 20


class Pool(ABC):
    """What is interrupted."""

    @abstractmethod
    def check_out(self) -> None:
        """Check out two connections and return them."""

    @abstractmethod
    def renew(self) -> None:
        """Make good what the pool has lost."""


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

    def renew(self) -> None:
        self._engine.dispose()


class Psycopg(Pool):
    def __init__(self, gate: Gate, url: str) -> None:
        from tidegate.psycopg import GatedConnectionPool

        options: dict[str, Any] = {"min_size": 2, "max_size": 2 + RENEWED_AFTER, "timeout": POOL_SECONDS}
        self._new = lambda: GatedConnectionPool(gate, url, open=True, **options)
        self._pool = self._new()

    def check_out(self) -> None:
        with self._pool.connection(), self._pool.connection():
            pass

    def renew(self) -> None:
        self._pool.close()
        self._pool = self._new()
        self._pool.wait()


POOLS: dict[str, Callable[[Gate, str], Pool]] = {
    "sqlalchemy-sync": Sqlalchemy,
    "psycopg-pool": Psycopg,
}


class Alarm:
    """A signal at a random moment, which nothing but a function's run can meet."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._armed = False
        signal.signal(signal.SIGALRM, self._ring)

    def interrupts(self, function: Callable[[], None], span: float) -> bool:
        """Run the function; whether the signal within `span` seconds ended it."""
        signal.setitimer(signal.ITIMER_REAL, max(1e-6, self._random.uniform(0, span)))
        try:
            self._armed = True
            function()
            self._armed = False
        except KeyboardInterrupt:
            return True
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False

    def _ring(self, *_: object) -> None:
        if self._armed:
            self._armed = False
            signal.raise_signal(signal.SIGINT)


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
    for n in range(rounds):
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
            pool.renew()
    print(json.dumps({"interrupted": interrupted, "left": left, "failed": failed}))


if __name__ == "__main__":
    main()
