"""Whole runs on real targets, judged against other limits that are measured in turns with the recommended
one.

A machine's speed drifts, and others may be at work on it. So each round measures every limit, one right
after the other, and only ratios within a round count.
"""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from tidegate.capacity.analysis import Plan, Recommendation, Step
from tidegate.capacity.apart import ApartTarget
from tidegate.capacity.conductor import Conductor, Load
from tidegate.capacity.generator import Generator, Now
from tidegate.capacity.journal import Journal
from tidegate.capacity.rows import Rows
from tidegate.capacity.sql import PostgresTarget
from tidegate.capacity.target import Target
from tidegate.capacity.url import Request, UrlTarget

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[2] / "examples"
TIMEOUT = 1.0


class _Silent:
    def begin(self, step: Step, remaining: tuple[int, float]) -> None: ...

    def now(self, step: Step, now: Now) -> None: ...


@dataclass(frozen=True)
class Against:
    """Goodput with the recommended limit as a share of that with each other limit, round by round."""

    recommendation: Recommendation
    ratios: dict[int, list[float]]

    def ratio(self) -> float:
        """Of the best of them: the smallest median."""
        return min(statistics.median(ratios) for ratios in self.ratios.values())

    def clearly_below(self, share: float) -> list[int]:
        """The limits against which it was below that share in every single round."""
        return [limit for limit, ratios in self.ratios.items() if max(ratios) < share]


def run(
    target: Callable[[], Target],
    limits: Sequence[int],
    *,
    rounds: int = 5,
    cell: float = 0.4,
    plan: Plan | None = None,
    seed: int = 1,
) -> Against:
    """Have a limit recommended, and measure it in turns with others."""
    plan = plan or Plan(
        timeout=TIMEOUT,
        stage=0.6,
        cell=0.6,
        warm_up=0.15,
        width=1.0,
        prove=False,
        max_limit=24,
        max_rate=2000,
    )
    # Whether the generator was late says nothing here: no limit rests on it.
    load = Load(seed=seed, most_in_flight=64, largest_lag=10.0)
    conductor = Conductor(target(), plan, load, Journal({}), _Silent())
    asyncio.run(conductor.conduct())
    found = conductor.found.search.recommendation()
    assert found.limit is not None, found.verdict
    return Against(found, asyncio.run(_in_turns(target(), found.limit, limits, rounds, cell)))


async def _in_turns(
    target: Target, recommended: int, limits: Sequence[int], rounds: int, cell: float
) -> dict[int, list[float]]:
    others = [limit for limit in limits if limit != recommended]
    ratios: dict[int, list[float]] = {limit: [] for limit in others}
    await target.open()
    try:
        generator = Generator(target, TIMEOUT, 1000)

        async def goodput(limit: int) -> float:
            played = await generator.play(
                warm_up=cell / 4, seconds=cell, times=None, limit=limit, watch=lambda _now: None
            )
            return played.counts.good / played.seconds

        for turn in range(rounds):
            order = [recommended, *others]
            found = {limit: await goodput(limit) for limit in (order if turn % 2 else reversed(order))}
            for limit in others:
                if found[limit]:
                    ratios[limit].append(found[recommended] / found[limit])
    finally:
        await target.close()
    return ratios


# --- targets -----------------------------------------------------------------------------------------


def function() -> Target:
    return ApartTarget(
        {"kind": "function", "function": "served_functions:degrading", "threads": 64, "data": None}
    )


# It sleeps the longer the more sleep: twenty milliseconds alone, and each pair costs both time.
POSTGRES = """
SELECT pg_sleep(0.02 * (1 + 0.02 * (n - 1) + 0.02 * n * (n - 1)))
FROM (SELECT greatest(count(*), 1)::float AS n FROM pg_stat_activity
      WHERE application_name = 'tidegate capacity' AND state = 'active') AS at_work
"""


def postgres(dsn: str) -> Callable[[], Target]:
    return lambda: PostgresTarget(dsn, POSTGRES, Rows.none())


# Full-text search without an index: all processors' work.
SQLITE = "SELECT count(*) FROM messages WHERE text LIKE '%' || (:n % 100) || '%'"


def sqlite(folder: Path) -> Callable[[], Target]:
    path = folder / "messages.db"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE messages(text)")
        texts = ((f"message {number} " + "la " * 30,) for number in range(20_000))
        connection.executemany("INSERT INTO messages VALUES (?)", texts)
    connection.close()
    job = {"kind": "sqlite", "database": str(path), "statement": SQLITE, "threads": 64, "data": None}
    return lambda: ApartTarget(job)


def url(place: str) -> Callable[[], Target]:
    return lambda: UrlTarget(Request(f"{place}/work"), Rows.none(), 64)


@contextmanager
def application() -> Iterator[str]:
    """A uvicorn in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [
        *(sys.executable, "-m", "uvicorn", "degrading_service:app", "--port", str(port)),
        *("--log-level", "warning", "--app-dir", str(EXAMPLES)),
    ]
    with subprocess.Popen(command) as server:
        try:
            place = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 30
            while True:
                try:
                    httpx.get(f"{place}/work")
                    break
                except httpx.ConnectError:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            yield place
        finally:
            server.terminate()
