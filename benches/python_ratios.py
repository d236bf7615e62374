"""The figures of the Python module, each as a ratio to its peer, both timed in turn in one run.

Run by ``make bench``. Prints a table and writes the figures, merged with those of the Rust core, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tidegate import Gate, Shed, use_priority

ROUNDS = 41
LOOPS = 20_000

Side = Callable[[int], float]


def timed(body: Callable[[Any, range], None], subject: Any) -> Side:
    """A side of a comparison: runs ``body`` with that many iterations and returns the seconds it took."""

    def side(loops: int) -> float:
        iterations = range(loops)
        start = time.perf_counter()
        body(subject, iterations)
        return time.perf_counter() - start

    return side


def timed_async(body: Callable[[Any, range], Awaitable[None]], subject: Any) -> Side:
    """As ``timed``, for a coroutine function."""

    async def measure(loops: int) -> float:
        iterations = range(loops)
        start = time.perf_counter()
        await body(subject, iterations)
        return time.perf_counter() - start

    def side(loops: int) -> float:
        return asyncio.run(measure(loops))

    return side


def with_block(subject: Any, iterations: range) -> None:
    for _ in iterations:
        with subject:
            pass


def with_admit(gate: Gate, iterations: range) -> None:
    for _ in iterations:
        with gate.admit():
            pass


def with_everything(gate: Gate, iterations: range) -> None:
    with use_priority("critical"):
        for _ in iterations:
            with gate:
                pass


def rejected(full: Gate, iterations: range) -> None:
    for _ in iterations:
        try:
            with full:
                pass
        except Shed:
            pass


async def async_with_block(subject: Any, iterations: range) -> None:
    for _ in iterations:
        async with subject:
            pass


def compare(name: str, bar: float | None, ours: Side, peer: Side) -> dict[str, Any]:
    """Medians of both sides and of their ratio, round by round."""
    ours(LOOPS), peer(LOOPS)
    rounds = [(ours(LOOPS) / LOOPS * 1e9, peer(LOOPS) / LOOPS * 1e9) for _ in range(ROUNDS)]
    ratio = statistics.median(a / b for a, b in rounds)
    return {
        "name": name,
        "ours_ns": round(statistics.median(a for a, _ in rounds), 1),
        "peer_ns": round(statistics.median(b for _, b in rounds), 1),
        "ratio": round(ratio, 4),
        "bar": bar,
        "ok": bar is None or ratio <= bar,
    }


def figures() -> list[dict[str, Any]]:
    """All of them. Those that need ``use_priority`` come last: it is not unused again after."""
    gate = Gate("bench", 20)
    full = Gate("full", 1)
    inside = full.try_admit()
    assert inside is not None
    bounded = timed(with_block, threading.BoundedSemaphore(20))
    plain = timed(with_block, gate)
    results = [
        compare("python.with_vs_bounded_semaphore", 0.0833, plain, bounded),
        compare("python.with_vs_lock", 1.0, plain, timed(with_block, threading.Lock())),
        compare(
            "python.async_with_vs_asyncio_semaphore",
            0.333,
            timed_async(async_with_block, gate),
            timed_async(async_with_block, asyncio.Semaphore(20)),
        ),
        compare("python.admit_vs_bounded_semaphore", 0.2, timed(with_admit, gate), bounded),
        compare("python.reject_vs_with", 5.0, timed(rejected, full), plain),
        # A clock is read on each side of the block, and an object keeps its ticket.
        compare(
            "python.adaptive_with_vs_bounded_semaphore",
            None,
            timed(with_block, Gate("adaptive", 20, controller="goodput", objective=1.0)),
            bounded,
        ),
        compare(
            "python.adaptive_async_with_vs_asyncio_semaphore",
            None,
            timed_async(async_with_block, Gate("adaptive", 20, controller="goodput", objective=1.0)),
            timed_async(async_with_block, asyncio.Semaphore(20)),
        ),
        compare(
            "python.with_everything_vs_bounded_semaphore",
            0.167,
            timed(with_everything, Gate("everything", 20, timing=True)),
            bounded,
        ),
    ]
    inside.release()
    return results


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--merge", type=Path, nargs="*", default=[], help="files with other figures")
    parser.add_argument("--out", type=Path, help="where to write all figures")
    args = parser.parse_args()
    gc.disable()
    given = [path for path in args.merge if path.exists()]  # a language that is missing has no file
    results = [figure for path in given for figure in json.loads(path.read_text())["figures"]]
    results += figures()
    print(f"{'figure':46} {'ours ns':>9} {'peer ns':>9} {'ratio':>8} {'bar':>8}")
    for figure in results:
        bar = "" if figure["bar"] is None else f"{figure['bar']:8.3f}"
        verdict = "" if figure["ok"] else "  above the bar"
        print(
            f"{figure['name']:46} {figure['ours_ns']:9.1f} {figure['peer_ns']:9.1f} "
            f"{figure['ratio']:8.3f} {bar:>8}{verdict}"
        )
    if args.out:
        args.out.write_text(json.dumps({"figures": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
