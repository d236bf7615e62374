"""The chatbot backend, as a process: `python -m tidegate.demo.backend`.

It speaks lines. The first one read is its job, the first one written is `ready`. After that a request is
`NUMBER CONVERSATION ESSENTIAL` (1 or 0) and its answer `NUMBER ok` or `NUMBER shed`, in any order. Where the
limit finds itself, `history` is answered by `history` and what it was. End of input ends the process at once,
whatever it is doing.

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
import traceback
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from typing import NoReturn

from tidegate.demo.chatbot import Chatbot
from tidegate.demo.database import open_database
from tidegate.demo.doors import ARMS, AUTO, Leave, auto, through
from tidegate.demo.history import ASK, answer
from tidegate.demo.job import ServeJob, make_way

_STDOUT = 1


class Workers:
    """The threads, an unbounded queue before them, and behind them the connections to the database."""

    def __init__(self, job: ServeJob) -> None:
        self._job = job
        self._all_started = threading.Barrier(job.workers)
        self.threads = ThreadPoolExecutor(job.workers, initializer=make_way)

    def warm_up(self) -> None:
        """Connect, and start every thread now, so that no request pays for it."""
        self._connections = open_database(self._job.database).pool(self._job.arm, self._job.workers)
        warming = [self.threads.submit(self._warm_up) for _ in range(self._job.workers)]
        for warmed in wait(warming, return_when=FIRST_EXCEPTION).done:
            warmed.result()

    def _warm_up(self) -> None:
        with self._connections.lend() as connection:
            Chatbot(connection, self._job.depth).warm_up()
        self._all_started.wait()

    def answer(self, conversation: int, leave: Leave) -> None:
        """One request, and out through the door."""
        try:
            with self._connections.lend() as connection:
                Chatbot(connection, self._job.depth).answer(conversation)
        finally:
            leave()


async def serve() -> None:
    """Serve requests until the input ends."""
    loop = asyncio.get_running_loop()
    requests = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
    order = await requests.readline()
    if not order:  # interrupted before there was anything to do
        return
    job = ServeJob.parse(order)
    gate = auto(job.timeout) if job.arm == AUTO else None
    door = ARMS[job.arm](job.limit) if gate is None else through(gate)
    workers = Workers(job)
    warming = loop.run_in_executor(None, workers.warm_up)
    first = asyncio.ensure_future(requests.readline())
    # To connect can take long, and who asked for it may be gone before it is done.
    await asyncio.wait((warming, first), return_when=asyncio.FIRST_COMPLETED)
    if first.done() and not first.result():
        _end(None)
    await warming
    gc.freeze()
    _write(b"ready")
    line = await first
    while line:
        if gate is not None and line.rstrip() == ASK:
            _write(answer(gate))
        else:
            number, conversation, essential = line.split()
            leave = door(essential == b"1")
            if leave is None:
                _write(number + b" shed")
            else:
                work = loop.run_in_executor(workers.threads, workers.answer, int(conversation), leave)
                work.add_done_callback(partial(_reply, number))
        line = await requests.readline()


def _reply(number: bytes, work: asyncio.Future[None]) -> None:
    if work.cancelled():
        return
    if error := work.exception():
        _end(error)
    _write(number + b" ok")


def _write(line: bytes) -> None:
    # Shorter than PIPE_BUF: written as a whole.
    os.write(_STDOUT, line + b"\n")


def _end(error: BaseException | None) -> NoReturn:
    """End the process, and with it the threads: nothing else stops one that waits for its query."""
    if error is not None:
        traceback.print_exception(error)
    os._exit(0 if error is None else 1)


def main() -> NoReturn:
    """Serve, and end."""
    try:
        asyncio.run(serve())
    except Exception as error:  # the process ends with it
        _end(error)
    _end(None)


if __name__ == "__main__":
    main()
