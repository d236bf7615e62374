"""Child processes that speak lines, and that never outlive the demo."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from tidegate.demo.job import Job

# A child that was told to end finishes the queries it is in, which takes well under a second.
_GRACE_SECONDS = 5.0


class ChildError(Exception):
    """A child process did not do its part."""


class Child:
    """A running child process."""

    def __init__(self, name: str, writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> None:
        self._name = name
        self._writer = writer
        self._reader = reader

    def send(self, line: bytes) -> None:
        """Write one line to it, without waiting for it to be read."""
        self._writer.write(line + b"\n")

    async def receive(self) -> bytes:
        """The next line it writes."""
        line = await self._reader.readline()
        if not line:
            raise ChildError(f"the {self._name} process ended unexpectedly")
        return line.rstrip()


@asynccontextmanager
async def child(name: str, job: Job) -> AsyncGenerator[Child]:
    """`tidegate.demo.NAME` at work on `job`, ready."""
    async with started(name, (sys.executable, "-m", f"tidegate.demo.{name}")) as running:
        running.send(job.line())
        await running.receive()
        yield running


@asynccontextmanager
async def started(
    name: str, command: Sequence[str], variables: Mapping[str, str] | None = None
) -> AsyncGenerator[Child]:
    """The process of `command`, with these environment variables beside this process's own.

    It ends at the end of its input, also when this process is killed. In a session of its own it gets no
    Ctrl-C from the terminal, so that this process alone decides how everything ends; and where the kernel
    shares the processors out by session, its threads take nothing from the load generator in this process.

    Raises:
        ChildError: There is no such program.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, start_new_session=True, env={**os.environ, **(variables or {})}
        )
    except OSError as error:
        raise ChildError(f"cannot start {command[0]}: {error.strerror}") from error
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Child(name, process.stdin, process.stdout)
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
