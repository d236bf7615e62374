"""A target's own process: `python -m tidegate.capacity.worker`, started by `tidegate.capacity.apart`.

The first line read is its job, the first one written says whether the target can be tested. After that it
asks the target what it is told to, until its input ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tidegate.capacity.function import FunctionTarget
from tidegate.capacity.here import Here
from tidegate.capacity.rows import Rows
from tidegate.capacity.sql import SqliteTarget
from tidegate.capacity.target import TargetError, in_few_words
from tidegate.demo.job import make_way


def target_of(job: dict[str, Any]) -> Here:
    """The target of a job: `kind`, what that kind needs, `threads`, and the data file or null."""
    rows = Rows.none() if job["data"] is None else Rows.read(Path(job["data"]))
    if job["kind"] == "function":
        return FunctionTarget(job["function"], rows, job["threads"], make_way)
    return SqliteTarget(job["database"], job["statement"], rows, job["threads"], make_way)


class _Worker:
    def __init__(self, target: Here, output: TextIO) -> None:
        self._target = target
        self._output = output
        self._running: dict[int, asyncio.Task[str | None]] = {}

    def obey(self, line: bytes) -> None:
        what, number = json.loads(line)
        if what == "withdraw":
            if number in self._running:
                self._running[number].cancel()
            return
        asking = self._target.idle() if what == "idle" else self._target.ask(number)
        self._running[number] = task = asyncio.create_task(asking)
        # Not in the task itself: one that is withdrawn before it began never runs.
        task.add_done_callback(partial(self._answer, number))

    def _answer(self, number: int, task: asyncio.Task[str | None]) -> None:
        del self._running[number]
        if task.cancelled():  # whoever withdrew it waits for this
            self.say([number, "withdrawn"])
        elif (error := task.exception()) is not None:
            self.say([number, in_few_words(error)])
        else:
            self.say([number, task.result()])

    def say(self, message: object) -> None:
        self._output.write(json.dumps(message) + "\n")
        self._output.flush()


async def _work(output: TextIO) -> None:
    lines = asyncio.StreamReader(limit=2**20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer)
    job = await lines.readline()
    if not job:  # interrupted before there was anything to do
        return
    try:
        target = target_of(json.loads(job))
        await target.open()
    except TargetError as error:
        output.write(json.dumps({"error": str(error)}) + "\n")
        output.flush()
        return
    worker = _Worker(target, output)
    worker.say({"most_in_flight": target.most_in_flight, "described": dict(target.describe())})
    while line := await lines.readline():
        worker.obey(line)
    # Threads cannot be told to end, and nobody waits for what they do.
    os._exit(0)


def main() -> None:
    """Work until the input ends."""
    # What the target prints must not be taken for answers.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    asyncio.run(_work(output))


if __name__ == "__main__":
    main()
