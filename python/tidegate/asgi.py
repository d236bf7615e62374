"""Gates for ASGI applications: Starlette, FastAPI, Litestar, Quart, Django under ASGI, or a bare function.

What a permit covers: a request holds it until the application has returned, which is after the last byte of a
streamed body and after its background tasks, since these use the database, too. A websocket holds it from
connect to disconnect: where many of them are idle, give them a gate of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import TYPE_CHECKING, Any, cast

from tidegate._context import use_priority
from tidegate._errors import ConfigError, Shed
from tidegate._names import Priority
from tidegate._native import priority_from
from tidegate.http import shed_response

if TYPE_CHECKING:
    from tidegate._native import Gate

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
PriorityOf = Callable[[Scope], "Priority | str | None"]

HEALTH_PATHS = ("/health", "/healthz", "/livez", "/readyz")

_TRY_AGAIN_LATER = 1013  # websocket close code


class ShedMiddleware:
    """Answers a Shed that the application did not handle with a 503, or closes the websocket.

    It comes too late once a response has begun. Then it lets the Shed pass, and the server aborts.

    Args:
        app: The application.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] in ("http", "websocket"):
            await _answer_sheds(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)


class GateMiddleware:
    """Admits each request and websocket through a gate, and answers with a 503 what it sheds.

    A Shed of another gate that the application did not handle is answered likewise. Lifespan events and
    scopes of unknown types pass.

    Args:
        app: The application.
        gate: The gate. Its limit holds for this process.
        websocket_gate: The gate for websockets, if it is another one.
        health_paths: Paths whose requests pass without a permit, compared exactly, after ``root_path``.
        priority: The priority of every request, or a function from scope to priority. The gates inside use
            it, too (``use_priority``). None leaves it to the context and the gate's default. A name that
            the function returns and that is none, as a client may send one, counts as "sheddable".
    """

    def __init__(
        self,
        app: App,
        gate: Gate,
        *,
        websocket_gate: Gate | None = None,
        health_paths: Collection[str] = HEALTH_PATHS,
        priority: Priority | str | PriorityOf | None = None,
    ) -> None:
        if isinstance(health_paths, str):
            raise TypeError("health_paths must be a collection of paths, got a str")
        self._app = app
        self._gates = {"http": gate, "websocket": gate if websocket_gate is None else websocket_gate}
        self._health_paths = frozenset(health_paths)
        self._priority = priority if priority is None or callable(priority) else priority_from(priority)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] not in self._gates:
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and _route_path(scope) in self._health_paths:
            await _answer_sheds(self._app, scope, receive, send)
        else:
            await _answer_sheds(self._admitted, scope, receive, send)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        priority = self._priority_of(scope)
        with self._gates[scope["type"]].admit(priority=priority):
            if priority is None:
                await self._app(scope, receive, send)
            else:
                with use_priority(priority):
                    await self._app(scope, receive, send)

    def _priority_of(self, scope: Scope) -> Priority | None:
        if not callable(self._priority):
            return self._priority
        answer = self._priority(scope)
        try:
            return None if answer is None else priority_from(answer)
        except ConfigError:
            return Priority.SHEDDABLE


def _route_path(scope: Scope) -> str:
    """The path without the prefix under which a proxy or a mount serves the application."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if path.startswith(root + "/") else path


async def _answer_sheds(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    begun = ""  # the type of the first message that commits the server to an answer

    async def noting(message: Message) -> None:
        nonlocal begun
        if message["type"] in _COMMITTING:
            begun = message["type"]
        await send(message)

    try:
        await app(scope, receive, noting)
    except Exception as error:
        shed = _shed_in(error)
        if shed is None:
            raise
        if scope["type"] == "websocket" and begun in ("", "websocket.accept"):
            await _refuse_websocket(shed, scope, send, accepted=begun != "")
        elif begun == "":
            await _send_response(shed, send, "http.response")
        else:
            raise


_COMMITTING = (
    "http.response.start",
    "websocket.accept",
    "websocket.close",
    "websocket.http.response.start",
)


def _shed_in(error: Exception) -> Shed | None:
    """The error, if it is a Shed; the first one, if it is a group of nothing else (a TaskGroup's)."""
    if isinstance(error, Shed):
        return error
    if isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)
        if group.split(Shed)[1] is None:
            return _shed_in(group.exceptions[0])
    return None


async def _refuse_websocket(shed: Shed, scope: Scope, send: Send, *, accepted: bool) -> None:
    if not accepted and "websocket.http.response" in (scope.get("extensions") or {}):
        await _send_response(shed, send, "websocket.http.response")
    else:
        # Before the handshake the server makes a 403 of this; there is no other way without the extension.
        reason = f"try again in {shed.retry_after_header} s"
        await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER, "reason": reason})


async def _send_response(shed: Shed, send: Send, kind: str) -> None:
    status, headers, body = shed_response(shed)
    raw = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
    raw.append((b"content-length", b"%d" % len(body)))
    await send({"type": f"{kind}.start", "status": status, "headers": raw})
    await send({"type": f"{kind}.body", "body": body})
