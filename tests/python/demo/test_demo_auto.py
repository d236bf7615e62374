"""The backend whose limit finds itself, spoken to by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tidegate import Gate
from tidegate.demo import history
from tidegate.demo.arrivals import Arrival
from tidegate.demo.child import child
from tidegate.demo.database import Address, open_database
from tidegate.demo.history import Change, History
from tidegate.demo.job import ServeJob
from tidegate.demo.users import Attempt, Outcome, play
from tidegate.testing import ManualClock

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Address:
    address = Address("sqlite", str(tmp_path_factory.mktemp("demo") / "chatbot.db"))
    open_database(address).build()
    return address


def users(number: int, seconds: float) -> list[Arrival]:
    return [Arrival(seconds * n / number, n, essential=True, pauses=()) for n in range(number)]


def test_it_goes_down_where_all_are_late_and_nobody_is_lost(address: Address) -> None:
    """Two windows of one backend, in which whatever is let in takes longer than its users wait."""
    timeout = 0.002  # less than a search of the whole corpus takes

    async def run() -> tuple[list[Sequence[Attempt]], History, History]:
        job = ServeJob(address, 100_000, "auto", workers=2, limit=1, timeout=timeout)
        async with child("backend", job) as backend:
            before = await history.ask(backend)
            numbers = iter(range(10_000))
            played = [await play(backend, users(60, 0.5), 0.5, timeout, numbers) for _ in range(2)]
            while (found := await history.ask(backend)).in_flight or not found.changes:
                if not found.in_flight:
                    played.append(await play(backend, users(60, 0.5), 0.5, timeout, numbers))
                await asyncio.sleep(0.05)
            return played, before, found

    played, before, found = asyncio.run(asyncio.wait_for(run(), 60))
    assert (before.limit, before.in_flight, before.changes) == (32, 0, [])
    for attempts in played:
        assert len(attempts) == 60
        assert {attempt.outcome for attempt in attempts} <= {Outcome.LATE, Outcome.SHED, Outcome.GOOD}
    assert found.changes[0].cause == "lost"
    assert found.limit < 32
    assert found.in_flight == 0


def test_the_history_is_a_line_however_long_it_is() -> None:
    clock = ManualClock(SECOND)
    gate = Gate("db", controller="aimd", max=1_000_000, prior=1_000_000, clock=clock)
    for number in range(100):
        gate.set_limit(999_000 + number, cause="lower")
        clock.advance(SECOND // 2)
    line = history.answer(gate)
    assert b"\n" not in line and len(line) < 4096, "PIPE_BUF: written as a whole"
    limit, in_flight, changes = json.loads(line.removeprefix(b"history "))
    assert (limit, in_flight, len(changes)) == (999_099, 0, 64)
    assert changes[-1] == [0.5, 999_099, "lower"]
    assert changes[0] == [32.0, 999_036, "lower"]


def test_answers_to_those_who_are_gone_are_passed_over() -> None:
    class Backend:
        def __init__(self) -> None:
            self.said: list[bytes] = []
            self.lines = [b"7 ok", b"8 shed", b'history [5,1,[[0.25,5,"lost"]]]', b"9 ok"]

        def send(self, line: bytes) -> None:
            self.said.append(line)

        async def receive(self) -> bytes:
            return self.lines.pop(0)

    backend = Backend()
    found = asyncio.run(history.ask(backend))  # type: ignore[arg-type]
    assert found == History(5, 1, [Change(0.25, 5, "lost")])
    assert (backend.said, backend.lines) == ([b"history"], [b"9 ok"])


def test_a_backend_with_a_given_limit_has_no_history(address: Address, tmp_path: Path) -> None:
    async def run() -> None:
        async with child("backend", ServeJob(address, 1, "tidegate", 1, 1)) as backend:
            await history.ask(backend)

    with pytest.raises(Exception, match="backend process ended unexpectedly"):
        asyncio.run(asyncio.wait_for(run(), 30))
