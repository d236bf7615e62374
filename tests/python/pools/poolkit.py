"""What the tests of several pool hooks need."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import tidegate
from gatekit import PATIENCE, admitted, assert_at_rest, released
from tidegate import Gate

INTERRUPTS = Path(__file__).with_name("interrupts.py")


class Stop(BaseException):
    """Something that `except Exception` does not catch."""


def driver(dsn: str, name: str) -> str:
    """The DSN as a SQLAlchemy URL for a driver."""
    return dsn.replace("postgresql://", f"postgresql+{name}://", 1)


def collect() -> None:
    """Collect what was forgotten; of that the libraries and the gate warn in their ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


def assert_counted(gate: Gate, **outcomes: int) -> None:
    """At rest, after so many permits with these outcomes and no others."""
    assert released(gate.stats()) == outcomes
    assert admitted(gate.stats()) == sum(outcomes.values())
    assert_at_rest(gate)


def interrupted(hook: str, url: str, rounds: int, seed: int) -> dict[str, Any]:
    """What is left after interrupts at random moments, in an interpreter that has no others."""
    run = subprocess.run(
        [sys.executable, str(INTERRUPTS), hook, url, str(rounds), str(seed)],
        env={**os.environ, "PYTHONPATH": str(Path(tidegate.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    counts: dict[str, Any] = json.loads(run.stdout)
    return counts


async def cancelled_at(tick: int, coroutine: Coroutine[Any, Any, object]) -> bool:
    """Run it, and cancel it when the loop has turned so often; whether that ended it."""
    task = asyncio.create_task(coroutine)
    for _ in range(tick):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE)
    if not task.cancelled():
        task.result()
    return task.cancelled()


async def turns_until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until other tasks have done something."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0)


def interrupted_at(tick: int, main: Callable[[], Coroutine[Any, Any, object]]) -> bool:
    """`asyncio.run` it, with a real SIGINT when the loop has turned so often; whether that ended it."""

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def turn(left: int) -> None:
            if left == 0:
                signal.raise_signal(signal.SIGINT)
            elif not done:
                loop.call_soon(turn, left - 1)

        done = False
        turn(tick)
        try:
            await main()
        finally:
            done = True

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        return True
    return False
