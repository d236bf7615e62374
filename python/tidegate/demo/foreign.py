"""Backends in other languages, as programs of their own that are asked over HTTP.

A command is started anew for each arm, with `DATABASE_URL` in its environment, as

    COMMAND --with-parent --door tidegate --port 0 --limit N --connections N --threads N --depth N

with `semaphore` or `none` as other doors. It opens its sessions, says `listening on http://HOST:PORT` in
its first line, and ends at once when its input ends. An essential request is `GET /answer/CONVERSATION`,
any other one `GET /suggestions/CONVERSATION`; 200 is an answer, 503 a shed.

Here a user who stops waiting hangs up. As behind most web servers, the work runs on all the same.
"""

from __future__ import annotations

import asyncio
import re
import resource
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tidegate.demo.child import Child, ChildError, started
from tidegate.demo.doors import UNLIMITED
from tidegate.demo.job import ServeJob
from tidegate.demo.postgres import PostgresDatabase, pool_size

_LISTENING = re.compile(rb"listening on http://([\w.]+):(\d+)")
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
_ANSWERS = {b"200": b"ok", b"503": b"shed"}


class HttpBackend:
    """Asks over HTTP what `Child` asks by lines, and answers as it does.

    Args:
        name: What to call it.
        host: Where it listens.
        port: Likewise.
        patience: After so many seconds a user hangs up.
    """

    def __init__(self, name: str, host: str, port: int, patience: float) -> None:
        self._name = name
        self._host = host
        self._port = port
        self._patience = patience
        self._asking: set[asyncio.Task[None]] = set()
        self._answers: asyncio.Queue[bytes | ChildError] = asyncio.Queue()

    def send(self, line: bytes) -> None:
        """Ask what `NUMBER CONVERSATION ESSENTIAL` stands for, without waiting for the answer."""
        asking = asyncio.create_task(self._ask(*line.split()))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)

    async def receive(self) -> bytes:
        """The next answer, `NUMBER ok` or `NUMBER shed`."""
        answer = await self._answers.get()
        if isinstance(answer, ChildError):
            raise answer
        return answer

    def close(self) -> None:
        """Hang up on what was not answered yet."""
        for asking in self._asking:
            asking.cancel()

    async def _ask(self, number: bytes, conversation: bytes, essential: bytes) -> None:
        path = b"/answer/" if essential == b"1" else b"/suggestions/"
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                self._answers.put_nowait(await self._answer(number, path + conversation))

    async def _answer(self, number: bytes, path: bytes) -> bytes | ChildError:
        try:
            answer = await self._get(path)
        except TimeoutError:  # also the kernel's, which is an OSError
            raise
        except OSError as error:
            return ChildError(f"the {self._name} process cannot be reached: {error}")
        status = _STATUS.match(answer)
        if status is None or status[1] not in _ANSWERS:
            return ChildError(f"the {self._name} process answered {answer[:80]!r}")
        return number + b" " + _ANSWERS[status[1]]

    async def _get(self, path: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            head = f"HTTP/1.1\r\nHost: {self._host}\r\nConnection: close\r\n\r\n"
            writer.write(b"GET " + path + b" " + head.encode())
            return await reader.read()
        finally:
            writer.transport.abort()


@asynccontextmanager
async def backend(command: Sequence[str], job: ServeJob, patience: float) -> AsyncGenerator[HttpBackend]:
    """The backend of `command` at work on `job`, ready.

    Raises:
        ChildError: It did not start, or did not say where it listens.
    """
    _allow_open_files()
    name = Path(command[0]).name
    variables = {"DATABASE_URL": job.database.location}
    async with started(name, [*command, *_options(job)], variables) as process:
        host, port = await _address(name, process)
        PostgresDatabase(job.database.location, own=job.database.own).make_way()
        asked = HttpBackend(name, host, port, patience)
        try:
            yield asked
        finally:
            asked.close()


def _options(job: ServeJob) -> list[str]:
    _, connections = pool_size(job.arm, job.workers)
    numbers = {
        "port": 0,
        "limit": job.limit,
        "connections": min(connections, job.workers),
        "threads": job.workers,
        "depth": job.depth,
    }
    options = ["--with-parent", "--door", "none" if job.arm in UNLIMITED else job.arm]
    for option, number in numbers.items():
        options += [f"--{option}", str(number)]
    return options


async def _address(name: str, process: Child) -> tuple[str, int]:
    line = await process.receive()
    listening = _LISTENING.match(line)
    if listening is None:
        raise ChildError(f"the {name} process did not say where it listens, but {line!r}")
    return listening[1].decode(), int(listening[2])


def _allow_open_files() -> None:
    """Thousands of users wait at once, each on a connection. The backend inherits it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
