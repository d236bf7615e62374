"""Backends in other languages: what the demo asks them, and when they do not do their part."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter

import pytest

pytest.importorskip("psycopg_pool", reason='PostgreSQL needs: pip install "tidegate[demo]"')

from tidegate.cli import main
from tidegate.demo import foreign
from tidegate.demo.child import ChildError
from tidegate.demo.database import Address
from tidegate.demo.foreign import HttpBackend
from tidegate.demo.job import ServeJob

PATIENCE = 60.0


def ask(line: bytes, reply: bytes) -> tuple[bytes, bytes]:
    """What is asked of a server that replies so, and the answer."""
    asked: list[bytes] = []

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        asked.append(request.split()[1])
        writer.write(reply)
        writer.close()

    async def run() -> bytes:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            backend = HttpBackend("test", *server.sockets[0].getsockname(), PATIENCE)
            backend.send(line)
            return await backend.receive()

    answer = asyncio.run(run())
    return asked[0], answer


def test_the_route_says_whether_a_request_is_essential() -> None:
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
    assert ask(b"7 12 1", ok) == (b"/answer/12", b"7 ok")
    assert ask(b"8 13 0", ok) == (b"/suggestions/13", b"8 ok")


def test_a_503_is_a_shed() -> None:
    assert ask(b"7 12 0", b"HTTP/1.1 503 Service Unavailable\r\n\r\n")[1] == b"7 shed"


@pytest.mark.parametrize("reply", [b"HTTP/1.1 500 Oh\r\n\r\n", b"", b"hello"])
def test_any_other_answer_is_a_failure(reply: bytes) -> None:
    with pytest.raises(ChildError, match="the test process answered"):
        ask(b"7 12 1", reply)


def test_a_backend_that_is_gone_is_told() -> None:
    async def run() -> None:
        async with await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0) as server:
            address = server.sockets[0].getsockname()
        backend = HttpBackend("test", *address, PATIENCE)
        backend.send(b"1 2 1")
        await backend.receive()

    with pytest.raises(ChildError, match="the test process cannot be reached"):
        asyncio.run(run())


def test_a_user_who_stops_waiting_hangs_up() -> None:
    async def run() -> None:
        hung_up = asyncio.Event()

        async def serve(reader: StreamReader, writer: StreamWriter) -> None:
            await reader.read()
            writer.close()
            hung_up.set()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            backend = HttpBackend("test", *server.sockets[0].getsockname(), patience=0.01)
            backend.send(b"1 2 1")
            await asyncio.wait_for(hung_up.wait(), PATIENCE)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["/nowhere/backend"], "cannot start /nowhere/backend: No such file"),
        (["sh", "-c", "echo hello"], "the sh process did not say where it listens, but b'hello'"),
        (["true"], "the true process ended unexpectedly"),
    ],
)
def test_a_command_that_is_no_backend_is_told(command: list[str], said: str) -> None:
    async def run() -> None:
        job = ServeJob(Address("postgres", "host=db"), depth=9, arm="tidegate", workers=2, limit=3)
        async with foreign.backend(command, job, PATIENCE):
            pass

    with pytest.raises(ChildError, match=said):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--database", "sqlite", "--backend", "x"], "--backend goes with --database postgres"),
        (["--backend", " "], "--backend is empty"),
    ],
)
def test_backends_of_no_use_are_usage_errors(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *options]) == 2
    assert said in capsys.readouterr().err
