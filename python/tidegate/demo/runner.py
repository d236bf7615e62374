"""The conductor: measures the database, then plays every cell, one after the other."""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from tidegate.demo import arrivals, auto, capacity
from tidegate.demo.arrivals import Arrival
from tidegate.demo.chatbot import calibrate
from tidegate.demo.child import Child, child
from tidegate.demo.database import Address, open_database
from tidegate.demo.doors import ARMS_OF, AUTO, UNLIMITED
from tidegate.demo.home import home
from tidegate.demo.job import Job, ServeJob
from tidegate.demo.report import Active, Auto, Reference, Report, Row, good_per_s, percentile, summarise
from tidegate.demo.users import Attempt, Backend, play

# A machine's speed drifts within seconds: many short measurements taken in turns say more than few long ones.
_ROUNDS = 5
_PAIRS = 5


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for. Times in seconds, loads as multiples of the best throughput."""

    loads: Sequence[float]
    seconds: float
    timeout: float
    seed: int
    limit: int | None
    """None: by Little's law from the measured throughput."""
    trace: Sequence[float] | None
    """Arrival times to follow. None: Poisson arrivals."""
    arrivals: str = "trace"
    """What `trace` is: the shipped one ("trace"), another one ("file"), or none ("poisson")."""
    database: str = "sqlite"
    dsn: str | None = field(default=None, repr=False)
    """An existing PostgreSQL. None: one of our own."""
    backend: Sequence[str] | None = None
    """The command of a backend in another language. None: our own, in Python."""
    auto: bool = False
    """Whether to play the arm that finds its limit, too."""


class Progress(Protocol):
    """Whoever wants to know how far a run is."""

    def begin(self, steps: int) -> None:
        """The run will have so many steps."""
        ...

    def step(self, what: str) -> None:
        """`what` begins now, and what was before is done."""
        ...


def run(options: Options, progress: Progress) -> Report:
    """Run the demo. However it ends, no process and no file is left."""
    levels = capacity.REMOTE_LEVELS if options.dsn else capacity.levels(os.cpu_count() or 1)
    cells = len(options.loads) * len(ARMS_OF[options.database])
    found = sum(auto.STEPS if _is_found(load) else 1 for load in options.loads) if options.auto else 0
    progress.begin(1 + _ROUNDS * len(levels) + cells + found + 2 * _PAIRS)
    progress.step("writing the database")
    with home(options.database, options.dsn) as address:
        job = prepare(address)
        with _without_collections():
            return asyncio.run(_Conductor(options, progress, job).conduct(levels))


def _is_found(load: float) -> bool:
    """Whether a limit can be found at this load."""
    return load >= auto.LEAST_LOAD


@contextmanager
def _without_collections() -> Generator[None]:
    """Thousands of waiting users are many objects: to look through them took the load generator 40 ms."""
    were_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if were_on:
            gc.enable()


def prepare(address: Address) -> Job:
    """Build the database and fit the search to this machine."""
    database = open_database(address)
    database.build()
    connection = database.connect()
    try:
        return Job(address, calibrate(connection))
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class _Capacity:
    """What the database was found able to do."""

    service_ms: float
    curve: Sequence[capacity.Level]
    best_per_s: float
    workers: int
    limit: int


class _Conductor:
    def __init__(self, options: Options, progress: Progress, job: Job) -> None:
        self._options = options
        self._progress = progress
        self._job = job
        self._database = open_database(job.database)
        self._active: Sequence[int] = ()
        self._found: list[Auto] = []
        self._lags_ms: dict[str, list[float]] = defaultdict(list)

    async def conduct(self, levels: Sequence[int]) -> Report:
        options = self._options
        async with child("meter", self._job) as meter:
            found = await self._measure(meter, levels)
            arms = ARMS_OF[options.database]
            rows: list[Row] = []
            for load in options.loads:
                rows += [await self._cell(load, arm, found) for arm in arms]
                if options.auto:
                    rows.append(await self._auto(load, found))
            reference = await self._against_reference(meter, max(options.loads), found)
        return Report(
            database=self._job.database.kind,
            seed=options.seed,
            timeout=options.timeout,
            seconds=options.seconds,
            arrivals=options.arrivals,
            limit=found.limit,
            workers=found.workers,
            best_per_s=found.best_per_s,
            service_ms=found.service_ms,
            curve=found.curve,
            # By arm, so that a generator that one arm alone disturbs does not hide behind the others.
            generator_lag_ms_p99=max(percentile(lags, 0.99) or 0.0 for lags in self._lags_ms.values()),
            reference=reference,
            rows=rows,
            active_backends=Active.among(self._active),
            auto=self._found,
        )

    async def _measure(self, meter: Child, levels: Sequence[int]) -> _Capacity:
        """Throughput at every concurrency, in rounds that go up and down through all of them."""
        per_s: dict[int, list[float]] = defaultdict(list)
        alone_ms: list[float] = []
        for number in range(_ROUNDS):
            for workers in levels if number % 2 == 0 else reversed(levels):
                self._progress.step(f"measuring the database, {workers} at a time")
                rate, service_ms = await _closed_loop(meter, workers, self._options.seconds / 12)
                per_s[workers].append(rate)
                if workers == 1:
                    alone_ms.append(service_ms)
        curve = capacity.curve(per_s)
        best = capacity.best_per_s(curve)
        return _Capacity(
            service_ms=statistics.median(alone_ms),
            curve=curve,
            best_per_s=best,
            workers=capacity.best_workers(curve),
            limit=self._options.limit or capacity.little_limit(best, self._options.timeout),
        )

    async def _cell(self, load: float, arm: str, found: _Capacity) -> Row:
        """One arm at one load. The users depend on the load alone."""
        self._progress.step(f"{load:g}x load, {arm}")
        window = self._options.seconds
        users = self._users(load, window, 0, found)
        watched = (load, arm) == (max(self._options.loads), "ungated")
        attempts = await self._play(arm, users, window, found, watched=watched)
        return summarise(load, arm, attempts, window, found.best_per_s)

    async def _auto(self, load: float, found: _Capacity) -> Row:
        """The arm that finds its limit, at one load."""
        if not _is_found(load):
            return await self._cell(load, AUTO, found)
        stage = auto.Stage(
            seconds=self._options.seconds,
            timeout=self._options.timeout,
            best_per_s=found.best_per_s,
            users=lambda window, occasion: self._users(load, window, occasion, found),
            backend=lambda arm: child("backend", self._job_of(arm, found)),
            step=self._progress.step,
            played=self._note_lags,
        )
        try:
            row, limit = await auto.find(load, stage)
        finally:
            self._database.clear()
        self._found.append(limit)
        return row

    async def _against_reference(self, meter: Child, load: float, found: _Capacity) -> Reference:
        """Tidegate's windows and the bare database's, in turns, every second pair the other way round."""
        window = self._options.seconds / 2
        ratios: list[float] = []
        for pair in range(1, _PAIRS + 1):
            rates: dict[str, float] = {}
            for side in ("reference", "tidegate") if pair % 2 else ("tidegate", "reference"):
                self._progress.step(f"pair {pair} of {_PAIRS} at {load:g}x load, {side}")
                if side == "reference":
                    rates[side], _ = await _closed_loop(meter, found.workers, window)
                else:
                    users = self._users(load, window, pair, found)
                    rates[side] = good_per_s(await self._play(side, users, window, found), window)
            ratios.append(rates["tidegate"] / rates["reference"])
        return Reference(load=load, pairs=_PAIRS, goodput_ratio=statistics.median(ratios))

    def _users(self, load: float, window: float, occasion: int, found: _Capacity) -> list[Arrival]:
        options = self._options
        return arrivals.users(
            load, found.best_per_s, window, seed=options.seed, trace=options.trace, occasion=occasion
        )

    async def _play(
        self, arm: str, users: Sequence[Arrival], window: float, found: _Capacity, *, watched: bool = False
    ) -> list[Attempt]:
        try:
            async with (
                self._backend(self._job_of(arm, found)) as backend,
                self._database.watch() if watched else nullcontext(self._active) as self._active,
            ):
                attempts = await play(backend, users, window, self._options.timeout)
        finally:
            self._database.clear()
        self._note_lags(arm, attempts)
        return attempts

    def _note_lags(self, arm: str, attempts: Sequence[Attempt]) -> None:
        self._lags_ms[arm].extend(attempt.lag * 1000 for attempt in attempts)

    def _job_of(self, arm: str, found: _Capacity) -> ServeJob:
        workers = capacity.STOCK_WORKERS if arm in UNLIMITED else found.workers
        return ServeJob(self._job.database, self._job.depth, arm, workers, found.limit, self._options.timeout)

    def _backend(self, job: ServeJob) -> AbstractAsyncContextManager[Backend]:
        if self._options.backend is None:
            return child("backend", job)
        from tidegate.demo import foreign

        return foreign.backend(self._options.backend, job, self._options.timeout)


async def _closed_loop(meter: Child, workers: int, seconds: float) -> tuple[float, float]:
    """Answers per second, and the median milliseconds of one."""
    meter.send(b"%d %.3f" % (workers, seconds))
    per_s, service_ms = (await meter.receive()).split()
    return float(per_s), float(service_ms)
