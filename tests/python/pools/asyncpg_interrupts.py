"""Interrupts at random moments of asyncpg's checkout and return: `python asyncpg_interrupts.py DSN SEED`

A real signal raises KeyboardInterrupt wherever the pool's code or ours is just then; in the loop's own code
it would only break the loop. asyncpg may count a connection as used for ever then, whose permit comes back
with the pool's end; any other comes back when it is collected. Prints what was left as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import random
import signal
import sys
import time
import warnings
from types import FrameType
from typing import Any

from asyncpg import pool as asyncpg_pool
from tidegate import Gate, _held, _lease
from tidegate import asyncpg as tidegate_asyncpg
from tidegate.asyncpg import GatedPool, create_pool

PLACES = {module.__file__ for module in (asyncpg_pool, tidegate_asyncpg, _held, _lease)}
POOL = 20
ENOUGH = 400  # interrupts
SECONDS = 10.0  # or this long
LIMIT = 2 * ENOUGH  # what is left for the collector must not end the storm


class Storm:
    def __init__(self, gate: Gate, dsn: str, seed: str) -> None:
        self.gate, self.dsn = gate, dsn
        self.moments = random.Random(seed)
        self.interrupted = 0
        self.armed = False
        self.until = time.monotonic() + SECONDS
        signal.signal(signal.SIGALRM, self.interrupt)

    def interrupt(self, _: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code.co_filename not in PLACES:
            frame = frame.f_back
        if self.armed and frame is not None:
            self.armed = False
            raise KeyboardInterrupt

    def enough(self) -> bool:
        return self.interrupted >= ENOUGH or time.monotonic() >= self.until

    def in_one_loop(self) -> None:
        """Storm until the pool is nearly lost."""
        loop = asyncio.new_event_loop()
        pool = loop.run_until_complete(self.new_pool())
        while not self.enough() and pool._queue.qsize() >= 2 and self.once(loop, pool):
            pass
        pool.terminate()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    async def new_pool(self) -> GatedPool:
        return await create_pool(self.gate, self.dsn, min_size=POOL, max_size=POOL, reset=nothing)

    def once(self, loop: asyncio.AbstractEventLoop, pool: GatedPool) -> bool:
        task = loop.create_task(check_out_twice(pool))
        try:
            self.armed = True
            signal.setitimer(signal.ITIMER_REAL, self.moments.uniform(1e-6, 200e-6))
            loop.run_until_complete(task)
        except KeyboardInterrupt:
            self.interrupted += 1
            task.cancel()
            loop.run_until_complete(asyncio.wait([task], timeout=0.05))
        finally:
            self.armed = False
        return task.done()


async def check_out_twice(pool: GatedPool) -> None:
    async with pool.acquire():
        await asyncio.sleep(0)
        async with pool.acquire():
            pass


async def nothing(connection: Any) -> None:
    pass


def main() -> None:
    dsn, seed = sys.argv[1:]
    warnings.simplefilter("ignore")  # a permit that is collected warns
    logging.disable()  # of tasks whose error nobody asked for
    sys.unraisablehook = lambda _: None  # an interrupt in a finalizer is none
    gate = Gate("db", LIMIT)
    storm = Storm(gate, dsn, seed)
    while not storm.enough():
        storm.in_one_loop()
        gc.collect()  # what was left behind
    in_flight, collected = gate.in_flight, gate.stats().collected
    permits = [gate.try_admit() for _ in range(LIMIT + 1)]
    whole = all(permits[:LIMIT]) and permits[LIMIT] is None
    print(
        json.dumps(
            {
                "interrupted": storm.interrupted,
                "in_flight": in_flight,
                "collected": collected,
                "whole": whole,
            }
        )
    )


if __name__ == "__main__":
    main()
