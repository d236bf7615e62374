"""A target in a process of its own: what runs there takes no time from the load's schedule.

The process is `tidegate.capacity.worker`. It is spoken to in lines, each a JSON list: `["ask", NUMBER]` and
`["withdraw", NUMBER]` one way, `[NUMBER, null]` or `[NUMBER, "how it failed"]` the other.
`["idle", NUMBER]` asks for nothing, to see what asking costs.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from typing import Any

from tidegate.capacity.target import TargetError

_GRACE_S = 2.0
_ENDED = "The target's process ended: look above for what it said, and keep it from ending."
_IDLE = 50
_LONGEST_LINE = 2**20


class ApartTarget:
    """Speaks for a target in another process.

    Args:
        job: What the worker makes its target from, see `tidegate.capacity.worker.Job`.
    """

    def __init__(self, job: Mapping[str, object]) -> None:
        self._job = job
        self._process: Process | None = None
        self._waiting: dict[int, asyncio.Future[str | None]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._most: int | None = None
        self._overhead = 0.0
        self._described: Mapping[str, str] = {}

    async def open(self) -> None:
        """Start the process, which tries what it can try."""
        # In a session of its own it gets no Ctrl-C from the terminal, and Linux shares the processors out by
        # session. What the target prints goes where this process's errors go.
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tidegate.capacity.worker"),
            stdin=PIPE,
            stdout=PIPE,
            start_new_session=True,
            limit=_LONGEST_LINE,
        )
        self._write(self._job)
        first = await self._read()
        if first is None:
            raise TargetError("The target's process ended before it was ready; what it said stands above.")
        if "error" in first:
            raise TargetError(first["error"])
        self._most, self._described = first["most_in_flight"], first["described"]
        self._listener = asyncio.create_task(self._listen())
        took: list[float] = []
        for number in range(_IDLE):
            began = time.perf_counter()
            await self._send("idle", number)
            took.append(time.perf_counter() - began)
        self._overhead = statistics.median(took)

    async def ask(self, number: int) -> str | None:
        """Have it asked. Cancelled, it ends when the other process says that the work has ended."""
        return await self._send("ask", number)

    async def _send(self, what: str, number: int) -> str | None:
        if self._listener is None or self._listener.done():  # nobody would answer
            raise TargetError(_ENDED)
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._write([what, number])
        cancelled = None
        while not answer.done():
            try:
                await asyncio.wait((answer,))
            except asyncio.CancelledError as error:
                if cancelled is None:
                    self._write(["withdraw", number])
                cancelled = error
        if cancelled is not None:
            answer.exception()  # nobody asks any more
            raise cancelled
        return answer.result()

    async def _listen(self) -> None:
        while (line := await self._read()) is not None:
            number, failed = line
            self._waiting.pop(number).set_result(failed)
        for answer in self._waiting.values():
            answer.set_exception(TargetError(_ENDED))
        self._waiting.clear()

    def _write(self, message: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        return json.loads(line) if line else None

    async def close(self) -> None:
        """End the process, with whatever still runs in it."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _GRACE_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        if self._listener is not None:
            await self._listener

    @property
    def most_in_flight(self) -> int | None:
        """What the target there says."""
        return self._most

    @property
    def overhead(self) -> float:
        """There and back."""
        return self._overhead

    def describe(self) -> Mapping[str, str]:
        """What the target there says, or before it is open what it is to be."""
        if self._described:
            return self._described
        return {
            name: " ".join(str(self._job[name]).split())
            for name in ("kind", "function", "database", "statement")
            if name in self._job
        }
