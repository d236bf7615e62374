"""Gates for FastAPI and Starlette applications."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import Response

from tidegate._errors import Shed
from tidegate._names import Priority
from tidegate.asgi import HEALTH_PATHS, GateMiddleware, PriorityOf, ShedMiddleware
from tidegate.http import shed_response

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp

    from tidegate._native import Gate


def install(
    app: Starlette,
    gate: Gate | None = None,
    *,
    websocket_gate: Gate | None = None,
    health_paths: Collection[str] = HEALTH_PATHS,
    priority: Priority | str | PriorityOf | None = None,
) -> None:
    """Answer every Shed with a 503, and, given a gate, admit each request through it.

    Sheds are answered wherever they come from: handlers, dependencies, middleware. Call it once for each
    application; a mounted one answers its own errors, so it needs its own call (without the gate).

    The gate is a middleware as if added here: middleware added later is outside of it. So add
    ``CORSMiddleware`` after this call, if browsers are to read the 503.

    Args:
        app: A FastAPI or Starlette application that has not started.
        gate: The gate for whole requests, as are the rest: see ``tidegate.asgi.GateMiddleware``.
        websocket_gate: The gate for websockets, if it is another one.
        health_paths: Paths that pass without a permit.
        priority: The priority of every request, or a function from scope to priority.

    Raises:
        RuntimeError: The application has started.
    """
    if app.middleware_stack is not None:
        raise RuntimeError("install() must be called before the application starts")
    app.add_exception_handler(Shed, _handle)
    if gate is not None:
        app.add_middleware(
            GateMiddleware,
            gate=gate,  # by name: earlier versions of FastAPI pass the application by name, too
            websocket_gate=websocket_gate,
            health_paths=health_paths,
            priority=priority,
        )
    _put_outermost(app)


async def _handle(connection: HTTPConnection, shed: Exception) -> Response:
    # Here the answer still passes through the middleware, so it gets CORS headers and is logged as a 503.
    # How to refuse a websocket depends on whether it was accepted, which only ShedMiddleware has seen.
    if connection.scope["type"] != "http" or not isinstance(shed, Shed):
        raise shed
    status, headers, body = shed_response(shed)
    return Response(body, status, headers)


def _put_outermost(app: Starlette) -> None:
    """Answer the sheds of all middleware, also of what is added later.

    Otherwise they would reach Starlette's outermost layer, which answers with a 500 of its own. Whatever was
    added is known when the stack is built, which is when the first event arrives.
    """
    build = app.build_middleware_stack

    def build_with_sheds_answered() -> ASGIApp:
        app.user_middleware.insert(0, Middleware(ShedMiddleware))
        try:
            return build()
        finally:
            app.user_middleware.pop(0)

    app.build_middleware_stack = build_with_sheds_answered  # type: ignore[method-assign]
