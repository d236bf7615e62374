"""Gates for ASGI applications: Starlette, FastAPI, Litestar, Quart, Django under ASGI, or a bare function.

What a permit covers: a request holds it until the application has returned, which is after the last byte of a
streamed body and after its background tasks, since these use the database, too. A websocket holds it from
connect to disconnect: where many of them are idle, give them a gate of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

from tidegate._arguments import check_gate
from tidegate._errors import ConfigError, Shed
from tidegate.edge import (
    HEALTH_PATHS,
    Edge,
    EdgeOptions,
    Request,
    TrustedHeader,
    outside,
    shed_in,
)
from tidegate.http import check_status, shed_response

if TYPE_CHECKING:
    from tidegate._native import Gate, Hold

__all__ = ["HEALTH_PATHS", "GateMiddleware", "GateOptions", "ShedMiddleware", "TrustedHeader"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_TRY_AGAIN_LATER = 1013  # websocket close code


class ShedMiddleware:
    """Answers a Shed that the application did not handle with a 503, or closes the websocket.

    It comes too late once a response has begun. Then it lets the Shed pass, and the server aborts.

    Args:
        app: The application.
        status: The HTTP status of a shed: 503 or 429.

    Raises:
        ConfigError: Another status.
    """

    def __init__(self, app: App, *, status: int = 503) -> None:
        check_status(status)
        self._app = app
        self._status = status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] in ("http", "websocket"):
            await _answer_sheds(self._app, scope, receive, send, self._status)
        else:
            await self._app(scope, receive, send)


class GateOptions(EdgeOptions, total=False):
    """What can be chosen at an ASGI edge. See `GateMiddleware`."""

    websocket_gate: Gate | None
    release: Literal["body", "start"]


class GateMiddleware:
    """Admits each request and websocket through a gate, and answers with a 503 what it sheds.

    A Shed of another gate that the application did not handle is answered likewise. Lifespan events and
    scopes of unknown types pass.

    Args:
        app: The application.
        gate: The gate. Its limit holds for this process.
        websocket_gate: The gate for websockets, if it is another one.
        release: "body": a permit is held until the application has returned. "start": only until the
            response starts, where what follows (a long download) does not load what the gate protects; pool
            hooks inside then take permits of their own.
        **options: As every edge has them: see ``tidegate.edge.Edge``. A function for ``priority`` gets the
            scope.

    Raises:
        ConfigError: An option breaks its rule.
        TypeError: An option has the wrong type.
    """

    def __init__(
        self,
        app: App,
        gate: Gate,
        *,
        websocket_gate: Gate | None = None,
        release: Literal["body", "start"] = "body",
        **options: Unpack[EdgeOptions],
    ) -> None:
        if release not in ("body", "start"):
            raise ConfigError(f"release must be 'body' or 'start', got {release!r}")
        self._app = app
        self._edge = Edge(gate, **options)
        self._websocket_gate = gate if websocket_gate is None else websocket_gate
        check_gate(self._websocket_gate)
        self._at_start = release == "start"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] in ("http", "websocket"):
            await _answer_sheds(self._admitted, scope, receive, send, self._edge.status)
        else:
            await self._app(scope, receive, send)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        gate = self._websocket_gate if scope["type"] == "websocket" else None
        with self._edge.admitted(_request(scope), gate) as hold:
            if self._at_start:  # which a websocket has not
                send = _releasing_at_start(hold, send)
            await self._app(scope, receive, send)


def _releasing_at_start(hold: Hold, send: Send) -> Send:
    async def releasing(message: Message) -> None:
        if message["type"] == "http.response.start":
            hold.leave()
        await send(message)

    return releasing


def _request(scope: Scope) -> Request:
    def header(name: str) -> str | None:
        wanted = name.encode("latin-1")
        found = [value for key, value in scope["headers"] if key.lower() == wanted]
        return b",".join(found).decode("latin-1") if found else None

    client = scope.get("client")
    return Request(
        method=scope.get("method", "GET"),  # a websocket's handshake is one
        path=_route_path(scope),
        header=header,
        client=client[0] if client else None,
        native=scope,
    )


def _route_path(scope: Scope) -> str:
    """The path without the prefix under which a proxy or a mount serves the application."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if path.startswith(root + "/") else path


async def _answer_sheds(app: App, scope: Scope, receive: Receive, send: Send, status: int) -> None:
    begun = ""  # the type of the last message after which fewer answers are possible
    receive, send = outside(receive), outside(send)

    def note(message: Message) -> Message:
        nonlocal begun
        if message["type"] in _COMMITTING:
            begun = message["type"]
        return message

    async def noting_receive() -> Message:
        return note(await receive())

    async def noting_send(message: Message) -> None:
        await send(note(message))

    try:
        await app(scope, noting_receive, noting_send)
    except Exception as error:
        shed = shed_in(error)
        if shed is None:
            raise
        if scope["type"] == "websocket" and begun in ("", "websocket.accept"):
            await _refuse_websocket(shed, scope, send, status, accepted=begun != "")
        elif begun == "":
            await _send_response(shed, scope, send, status, "http.response")
        else:
            raise


_COMMITTING = (
    "http.response.start",
    "websocket.accept",
    "websocket.close",
    "websocket.disconnect",
    "websocket.http.response.start",
)


async def _refuse_websocket(shed: Shed, scope: Scope, send: Send, status: int, *, accepted: bool) -> None:
    if not accepted and "websocket.http.response" in (scope.get("extensions") or {}):
        await _send_response(shed, scope, send, status, "websocket.http.response")
    else:
        # Before the handshake the server makes a 403 of this; there is no other way without the extension.
        reason = f"try again in {shed.retry_after_header} s"
        await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER, "reason": reason})


async def _send_response(shed: Shed, scope: Scope, send: Send, status: int, kind: str) -> None:
    status, headers, body = shed_response(shed, status)
    raw = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
    raw.append((b"content-length", b"%d" % len(body)))
    await send({"type": f"{kind}.start", "status": status, "headers": raw})
    await send({"type": f"{kind}.body", "body": b"" if scope.get("method") == "HEAD" else body})
