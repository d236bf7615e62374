"""Gates for FastAPI and Starlette applications: for all requests, and for those of some routes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Unpack

from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import Response

from tidegate._errors import Shed
from tidegate._held import joined, marked
from tidegate._native import Hold, Permit
from tidegate.asgi import GateMiddleware, GateOptions, ShedMiddleware
from tidegate.http import shed_response

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp

    from tidegate._native import Gate
    from tidegate._types import PriorityLike


def install(app: Starlette, gate: Gate | None = None, **options: Unpack[GateOptions]) -> None:
    """Answer every Shed with a 503, and, given a gate, admit each request through it.

    Sheds are answered wherever they come from: handlers, dependencies, middleware. Call it once for each
    application; a mounted one answers its own errors, so it needs its own call (without the gate).

    The gate is a middleware as if added here: middleware added later is outside of it. So add
    ``CORSMiddleware`` after this call, if browsers are to read the 503.

    Args:
        app: A FastAPI or Starlette application that has not started.
        gate: The gate for whole requests.
        **options: See ``tidegate.asgi.GateMiddleware``.

    Raises:
        RuntimeError: The application has started, or has this gate already.
        ConfigError: An option breaks its rule.
        TypeError: An option has the wrong type.
    """
    if app.middleware_stack is not None:
        raise RuntimeError("install() must be called before the application starts")
    if gate is not None and any(each.kwargs.get("gate") is gate for each in app.user_middleware):
        raise RuntimeError("this application has this gate already: a request would take a second place")
    status = options.get("status", 503)

    async def handle(connection: HTTPConnection, shed: Exception) -> Response:
        # Here the answer still passes through the middleware, so it gets CORS headers and is logged as a 503.
        # How to refuse a websocket depends on whether it was accepted, which only ShedMiddleware has seen.
        if connection.scope["type"] != "http" or not isinstance(shed, Shed):
            raise shed
        code, headers, body = shed_response(shed, status)
        return Response(body, code, headers)

    if gate is not None:
        GateMiddleware(app, gate, **options)  # bad options are an error here, and not when the app starts
        # By name: earlier versions of FastAPI pass the application by name, too.
        app.add_middleware(GateMiddleware, gate=gate, **options)
    app.add_exception_handler(Shed, handle)
    _put_outermost(app, status)


def admitted(
    gate: Gate, *, priority: PriorityLike | None = None, weight: int = 1
) -> Callable[[], AsyncIterator[Permit]]:
    """A dependency that holds a permit while the route runs: ``Depends(admitted(gate))``.

    It ends when FastAPI ends dependencies: from 0.118 on after the response has been sent, before that (and
    from 0.106 on) already when the route has returned, which is before a streamed body. A request that
    holds a permit of the same gate keeps that one.

    Args:
        gate: The gate.
        priority: The priority; None leaves it to the context and the gate's default.
        weight: How much of the limit it takes.

    Raises:
        Shed: From the dependency, when there is no room; ``install(app)`` answers it.
    """

    async def dependency() -> AsyncIterator[Permit]:
        hold = joined(gate) or Hold.enter(gate, priority=priority, weight=weight)
        with hold, marked(hold):
            yield hold.permit

    return dependency


def _put_outermost(app: Starlette, status: int) -> None:
    """Answer the sheds of all middleware, also of what is added later.

    Otherwise they would reach Starlette's outermost layer, which answers with a 500 of its own. Whatever was
    added is known when the stack is built, which is when the first event arrives.
    """
    build = app.build_middleware_stack

    def build_with_sheds_answered() -> ASGIApp:
        app.user_middleware.insert(0, Middleware(ShedMiddleware, status=status))
        try:
            return build()
        finally:
            app.user_middleware.pop(0)

    app.build_middleware_stack = build_with_sheds_answered  # type: ignore[method-assign]
