"""The chatbot backend, as a process: `python -m tidegate.demo.backend`.

It speaks lines. The first one read is its job, the first one written is `ready`. After that a request is
`NUMBER CONVERSATION ESSENTIAL` (1 or 0) and its answer `NUMBER ok` or `NUMBER shed`, in any order. End of
input ends the process: requests still queued are dropped, those being worked on are finished.

An event loop reads the requests and asks the door; only what was let in reaches the pool. (If the door were
inside a worker thread, a full backend could not say no before a thread is free to say it.)

A user who stops waiting is not noticed here. The work runs on, as behind most web servers.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tidegate.demo.chatbot import Chatbot
from tidegate.demo.database import open_database
from tidegate.demo.doors import ARMS, Leave
from tidegate.demo.job import ServeJob, make_way

_STDOUT = 1


class Workers:
    """The pool: threads that each hold one connection, and an unbounded queue before them."""

    def __init__(self, job: ServeJob) -> None:
        self._job = job
        self._own = threading.local()
        self._all_started = threading.Barrier(job.workers)
        self.pool = ThreadPoolExecutor(job.workers, initializer=self._connect)

    def _connect(self) -> None:
        make_way()
        connection = open_database(self._job.database).connect()
        self._own.bot = Chatbot(connection, self._job.depth)

    def warm_up(self) -> None:
        """Start every thread now, so that no request pays for it."""
        for warmed in [self.pool.submit(self._warm_up) for _ in range(self._job.workers)]:
            warmed.result()

    def _warm_up(self) -> None:
        self._own.bot.warm_up()
        self._all_started.wait()

    def answer(self, conversation: int, leave: Leave) -> None:
        """One request, and out through the door."""
        try:
            self._own.bot.answer(conversation)
        finally:
            leave()

    def stop(self) -> None:
        """Drop what is queued and finish what is begun."""
        self.pool.shutdown(wait=True, cancel_futures=True)


async def serve() -> None:
    """Serve requests until the input ends."""
    loop = asyncio.get_running_loop()
    requests = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
    order = await requests.readline()
    if not order:  # interrupted before there was anything to do
        return
    job = ServeJob.parse(order)
    door = ARMS[job.arm](job.limit)
    workers = Workers(job)
    workers.warm_up()
    gc.freeze()
    _write(b"ready")
    while line := await requests.readline():
        number, conversation, essential = line.split()
        leave = door(essential == b"1")
        if leave is None:
            _write(number + b" shed")
            continue
        work = loop.run_in_executor(workers.pool, workers.answer, int(conversation), leave)
        work.add_done_callback(partial(_reply, number))
    workers.stop()


def _reply(number: bytes, work: asyncio.Future[None]) -> None:
    if not work.cancelled():
        work.result()
        _write(number + b" ok")


def _write(line: bytes) -> None:
    # Shorter than PIPE_BUF: written as a whole.
    os.write(_STDOUT, line + b"\n")


if __name__ == "__main__":
    asyncio.run(serve())
