"""What servers serve in processes of their own: one service, as a WSGI and as an ASGI application.

The gate's limit is in TIDEGATE_LIMIT. What is held goes on when the file named by TIDEGATE_GO appears; what
the gate has come to at the end of a process is written into the folder named by TIDEGATE_ENDS.
"""

import asyncio
import io
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from tidegate import Gate
from tidegate.asgi import GateMiddleware as AsgiGateMiddleware
from tidegate.wsgi import GateMiddleware as WsgiGateMiddleware

gate = Gate("edge", limit=int(os.environ["TIDEGATE_LIMIT"]))
full = Gate("db", limit=0)
go = Path(os.environ["TIDEGATE_GO"])

OPTIONS: Any = {"health_paths": ["/stats"], "priority": {"POST /*": "sheddable"}}
POLL = 0.005


def stats() -> bytes:
    now = gate.stats()
    return json.dumps(
        {
            "pid": os.getpid(),
            "in_flight": now.in_flight,
            "high_water": now.high_water,
            "admitted": {str(priority): n for priority, n in now.admitted.items() if n},
            "released": {str(outcome): n for outcome, n in now.released.items() if n},
            "closed": gate.closed,
        }
    ).encode()


def note_end() -> None:
    Path(os.environ["TIDEGATE_ENDS"], str(os.getpid())).write_bytes(stats())


# --- WSGI -----------------------------------------------------------------------------------------


def held() -> Iterator[bytes]:
    yield b"%d\n" % os.getpid()
    while not go.exists():
        time.sleep(POLL)
    yield b"end\n"


def endless() -> Iterator[bytes]:
    while True:
        yield b"x" * 65536


@full.guard
def shed_first() -> Iterator[bytes]:
    yield b"unreachable"


def respond(environ: dict[str, Any], start_response: Any) -> Any:
    path = environ["PATH_INFO"]
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/stats":
        return [stats()]
    if path == "/file":
        return environ["wsgi.file_wrapper"](io.BytesIO(b"content"))
    streams = {"/held": held, "/endless": endless, "/shed-first": shed_first}
    return streams[path]() if path in streams else [b"%d\n" % os.getpid()]


wsgi = WsgiGateMiddleware(respond, gate, **OPTIONS)


# --- ASGI -----------------------------------------------------------------------------------------


async def async_held() -> AsyncIterator[bytes]:
    yield b"%d\n" % os.getpid()
    while not go.exists():
        await asyncio.sleep(POLL)
    yield b"end\n"


async def async_endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 65536
        await asyncio.sleep(0)


async def async_once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def lifespan(receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await gate.drain_async(timeout=10)
    note_end()
    await send({"type": "lifespan.shutdown.complete"})


async def respond_async(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    while (message := await receive()).get("more_body"):
        pass
    assert message["type"] == "http.request"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    leaving = asyncio.ensure_future(receive())
    body = {
        "/held": async_held,
        "/endless": async_endless,
        "/stats": lambda: async_once(stats()),
    }.get(scope["path"], lambda: async_once(b"%d\n" % os.getpid()))()
    async for part in body:
        if leaving.done():
            return
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    leaving.cancel()


asgi = AsgiGateMiddleware(respond_async, gate, **OPTIONS)
