"""Gates for gRPC servers, synchronous and asyncio, as server interceptors.

A call that is shed ends with RESOURCE_EXHAUSTED and tells in ``grpc-retry-pushback-ms`` when to come back;
so does one in which a gate further inside sheds. A call holds its permit until its handler has ended, which
for a streamed answer is after the last message.

Tested with grpcio 1.60, 1.71 and 1.85.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterator,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager
from contextvars import copy_context
from math import ceil, inf
from random import randint
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack
from urllib.parse import unquote

import grpc
import grpc.aio

from tidegate._errors import ConfigError, Shed
from tidegate._names import Outcome, Reason
from tidegate._native import Classifier
from tidegate.edge import HEALTH_LIMIT, Edge, PrioritySource, Request, TrustedHeader, shed_in

if TYPE_CHECKING:
    from tidegate._native import Gate, Hold

__all__ = ["HEALTH_METHODS", "AioGateInterceptor", "GateInterceptor", "InterceptorOptions", "TrustedHeader"]

HEALTH_METHODS = ("/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/List")
HEALTH_WATCH = "/grpc.health.v1.Health/Watch"

_PUSHBACK = "grpc-retry-pushback-ms"
_DO_NOT_RETRY = "-1"
_UNKNOWN_MS = 1_000  # as Retry-After has it
_DAY_SECONDS = 86_400

_OUTCOMES = {
    grpc.StatusCode.DEADLINE_EXCEEDED: Outcome.OVERLOAD,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Outcome.OVERLOAD,
    grpc.StatusCode.CANCELLED: Outcome.IGNORE,
}

# Messages and contexts belong to the server and its handlers; this module looks into neither kind of message.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Behavior: TypeAlias = Callable[..., Any]
_Context: TypeAlias = Any  # of either server


class InterceptorOptions(TypedDict, total=False):
    """What can be chosen at a gRPC edge. See `GateInterceptor`."""

    priority: PrioritySource | None
    health_methods: Collection[str]
    health_limit: int


class GateInterceptor(grpc.ServerInterceptor):
    """Admits each call to a synchronous server through a gate: ``grpc.server(..., interceptors=[this])``.

    A call is counted from its arrival, also while it waits for a thread. What is shed is told so at once, and
    health checks are answered, by threads of the interceptor's own. A handler cannot be interrupted: when its
    client has left, the permit goes with the handler.

    Args:
        gate: The gate. Its limit holds for this process, and should exceed the server's threads by what may
            wait for them.
        **options: As every edge has them (see ``tidegate.edge.Edge``), for methods in place of paths.
            ``priority``: a mapping has patterns such as "/shop.Orders/*"; a `Classifier` finds the method as
            ``path`` and metadata as ``header.NAME``; a `TrustedHeader` names a metadata key; a function gets
            the ``HandlerCallDetails``. ``health_methods``: methods that do not ask the
            gate. A ``Watch`` of the health service passes and holds nothing.

    Raises:
        ConfigError: An option breaks its rule; or a rule names ``client`` or a `TrustedHeader` some proxies
            only: who is connected cannot be told before the handler runs. Say "*" where only the proxy gets
            here.
        TypeError: An option has the wrong type.
    """

    def __init__(self, gate: Gate, **options: Unpack[InterceptorOptions]) -> None:
        if _looks_at_peers(options.get("priority")):
            raise ConfigError(
                "a synchronous server does not tell its interceptors who is connected: proxies of a "
                "TrustedHeader must be '*', and rules may not name client"
            )
        self._edge = _edge(gate, options)
        self._health_methods = frozenset(options.get("health_methods", HEALTH_METHODS))
        # Neither has a thread until it is needed.
        self._health_threads = ThreadPoolExecutor(
            max(1, options.get("health_limit", HEALTH_LIMIT)), "tidegate-health"
        )
        self._shed_threads = ThreadPoolExecutor(1, "tidegate-shed")

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Any],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Admit a call that has arrived. In the server's own thread, so this never waits."""
        handler: _Handler | None = continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method == HEALTH_WATCH:
            return handler
        try:
            place = _Place.take(self._edge, _request(handler_call_details, _UNTOLD_PEER))
        except Shed as shed:
            return _shedding(shed.with_traceback(None), self._shed_threads)
        behavior = _wrapped(_behavior(handler), place, streams=handler.response_streaming)
        if method in self._health_methods:
            _run_in(self._health_threads, behavior)
        return _with_behavior(handler, behavior)


class AioGateInterceptor(grpc.aio.ServerInterceptor):
    """Admits each call to an asyncio server through a gate: ``grpc.aio.server(interceptors=[this])``.

    A cancelled call gives its permit back at once. A handler that is no coroutine runs in the server's
    threads, and is admitted there.

    Args:
        gate: The gate. Its limit holds for this process.
        **options: As `GateInterceptor` has them; a `TrustedHeader` may believe some proxies only.

    Raises:
        ConfigError: An option breaks its rule.
        TypeError: An option has the wrong type.
    """

    def __init__(self, gate: Gate, **options: Unpack[InterceptorOptions]) -> None:
        self._edge = _edge(gate, options)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Put the gate around the handler of a call that has arrived."""
        handler: _Handler | None = await continuation(handler_call_details)
        if handler is None or handler_call_details.method == HEALTH_WATCH:
            return handler

        def admitted(context: _Context) -> AbstractContextManager[None]:
            return _admitted(self._edge, _request(handler_call_details, _address(context.peer())), context)

        behavior = _behavior(handler)
        if inspect.isasyncgenfunction(behavior):
            wrapped = _async_generator(behavior, admitted)
        elif inspect.iscoroutinefunction(behavior):
            wrapped = _coroutine(behavior, admitted)
        elif handler.response_streaming:
            wrapped = _generator(behavior, admitted)
        else:
            wrapped = _function(behavior, admitted)
        return _with_behavior(handler, wrapped)


# --- who asks --------------------------------------------------------------------------------------

_UNTOLD_PEER = "untold"  # no address, so no TrustedHeader believes it; None would be a Unix socket


def _edge(gate: Gate, options: InterceptorOptions) -> Edge:
    return Edge(
        gate,
        priority=options.get("priority"),
        health_paths=options.get("health_methods", HEALTH_METHODS),
        health_limit=options.get("health_limit", HEALTH_LIMIT),
    )


def _request(details: grpc.HandlerCallDetails, client: str | None) -> Request:
    def header(name: str) -> str | None:
        found = [value for key, value in details.invocation_metadata or () if key == name]
        return (
            ",".join(value if isinstance(value, str) else value.decode("latin-1") for value in found) or None
        )

    return Request(method="POST", path=details.method, header=header, client=client, native=details)


def _address(peer: str) -> str | None:
    """The address in "ipv4:127.0.0.1:5000" or "ipv6:%5B::1%5D:5000"; None for a Unix socket."""
    kind, _, rest = unquote(peer).partition(":")
    if kind in ("ipv4", "ipv6"):
        return rest.rpartition(":")[0].strip("[]")
    return None if kind in ("unix", "unix-abstract") else _UNTOLD_PEER


def _critical(_name: str) -> str:
    return "critical"


def _looks_at_peers(source: PrioritySource | None) -> bool:
    if isinstance(source, TrustedHeader):
        anybody = Request("POST", "/", header=_critical, client=_UNTOLD_PEER, native=None)
        return source.value(anybody) is None
    if isinstance(source, Classifier):
        return "client" in source.attributes
    return isinstance(source, Sequence) and not isinstance(source, str) and any(map(_looks_at_peers, source))


# --- what is answered to a shed --------------------------------------------------------------------


def pushback_ms(shed: Shed) -> str:
    """The value of ``grpc-retry-pushback-ms``: milliseconds to stay away; -1 where no retry can succeed.

    They are jittered upwards, which keeps those who were shed together from coming back together.
    """
    # After closing, this process admits nothing more, but its successor or a replica may at once.
    wait = None if shed.reason is Reason.CLOSED else shed.retry_after
    if wait == inf:
        return _DO_NOT_RETRY
    shortest = _UNKNOWN_MS if wait is None else max(1, ceil(min(wait, _DAY_SECONDS) * 1_000))
    return str(shortest + randint(0, max(1, shortest // 2)))  # noqa: S311 - no secret


def _abort(context: _Context, shed: Shed) -> Any:
    """Ends the call, by an exception; an asyncio context has it awaited."""
    context.set_trailing_metadata(((_PUSHBACK, pushback_ms(shed)),))
    # How full the gate is, is not for clients to know.
    return context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"shed by gate '{shed.gate}' ({shed.reason})")


@contextmanager
def _sheds_answered(context: _Context) -> Generator[None]:
    try:
        yield
    except Exception as error:
        shed = shed_in(error)
        if shed is not None:
            _abort(context, shed)
        raise


@asynccontextmanager
async def _sheds_answered_async(context: _Context) -> AsyncGenerator[None]:
    try:
        yield
    except Exception as error:
        shed = shed_in(error)
        if shed is not None:
            await _abort(context, shed)
        raise


def _shedding(shed: Shed, threads: ThreadPoolExecutor) -> _Handler:
    """A handler for any kind of call: as one that takes a stream, it need not wait for a message."""

    def behavior(_messages: Iterator[Any], context: _Context) -> None:
        with _sheds_answered(context):
            raise shed

    _run_in(threads, behavior)
    return grpc.stream_unary_rpc_method_handler(behavior)


# --- what a call came to ---------------------------------------------------------------------------


def _leave(hold: Hold, context: _Context, error: BaseException | None) -> None:
    """Gives the place back. The status tells the outcome where there is one, and the exception where not."""
    outcome = _outcome(context, error)
    if outcome is None:
        hold.end(error)
    else:
        hold.leave(outcome)


def _outcome(context: _Context, error: BaseException | None) -> Outcome | None:
    # An abort raises an exception of its own, which says nothing but has in its context what led to it.
    if error is not None and (shed_in(error) or (error.__context__ and shed_in(error.__context__))):
        return Outcome.IGNORE
    if context.time_remaining() == 0:
        return Outcome.OVERLOAD
    try:
        return _OUTCOMES.get(context.code())
    except (AttributeError, NotImplementedError):  # plain functions on an asyncio server, others' wrappers
        return None


@contextmanager
def _admitted(edge: Edge, request: Request, context: _Context) -> Generator[None]:
    with edge.admitted(request) as hold:
        try:
            yield
        except BaseException as error:
            _leave(hold, context, error)
            raise
        _leave(hold, context, None)


class _Place:
    """A call's place, from its arrival on: until its handler has ended, or the server drops the call unrun.

    It drops one that comes above ``maximum_concurrent_rpcs``, whose client leaves while it waits for a
    thread, or whose message cannot be read.
    """

    def __init__(self, block: AbstractContextManager[Hold]) -> None:
        self._block = block
        self._hold = block.__enter__()

    @classmethod
    def take(cls, edge: Edge, request: Request) -> _Place:
        # The server runs interceptors and handler in one context, made for this call. So the mark that is set
        # here is found there, in whatever thread, and need not be taken away.
        return cls(edge.admitted(request))

    @contextmanager
    def until_end(self, context: _Context) -> Generator[None]:
        try:
            yield
        except BaseException as error:
            _leave(self._hold, context, error)
            raise
        _leave(self._hold, context, None)

    def drop(self) -> None:
        self._hold.leave(Outcome.IGNORE)

    def __del__(self) -> None:
        if hasattr(self, "_hold"):  # it was admitted
            self.drop()
            # The context is anybody's by now: what the block puts back must not be put back there.
            copy_context().run(self._block.__exit__, None, None, None)


# --- handlers --------------------------------------------------------------------------------------


def _wrapped(behavior: _Behavior, place: _Place, *, streams: bool) -> _Behavior:
    if getattr(behavior, "experimental_non_blocking", False):
        return _non_blocking(behavior, place)
    return (_generator if streams else _function)(behavior, place.until_end)


def _function(behavior: _Behavior, admitted: Callable[[_Context], AbstractContextManager[None]]) -> _Behavior:
    @functools.wraps(behavior)
    def wrapper(messages: Any, context: _Context) -> Any:
        with _sheds_answered(context), admitted(context):
            return behavior(messages, context)

    return wrapper


def _generator(
    behavior: _Behavior, admitted: Callable[[_Context], AbstractContextManager[None]]
) -> _Behavior:
    @functools.wraps(behavior)
    def wrapper(messages: Any, context: _Context) -> Iterator[Any]:
        with _sheds_answered(context), admitted(context):
            yield from behavior(messages, context)

    return wrapper


def _non_blocking(behavior: _Behavior, place: _Place) -> _Behavior:
    """The handler returns at once and sends later: the call's end is all that can be known."""

    @functools.wraps(behavior)
    def wrapper(message: Any, context: _Context, send: Callable[[Any], None]) -> Any:
        if not context.add_callback(place.drop):
            place.drop()
        with _sheds_answered(context):
            return behavior(message, context, send)

    return wrapper


def _coroutine(
    behavior: _Behavior, admitted: Callable[[_Context], AbstractContextManager[None]]
) -> _Behavior:
    @functools.wraps(behavior)
    async def wrapper(messages: Any, context: _Context) -> Any:
        async with _sheds_answered_async(context):
            with admitted(context):
                return await behavior(messages, context)

    return wrapper


def _async_generator(
    behavior: _Behavior, admitted: Callable[[_Context], AbstractContextManager[None]]
) -> _Behavior:
    @functools.wraps(behavior)
    async def wrapper(messages: Any, context: _Context) -> AsyncIterator[Any]:
        async with _sheds_answered_async(context):
            with admitted(context):
                async with aclosing(behavior(messages, context)) as answers:
                    async for answer in answers:
                        yield answer

    return wrapper


def _behavior(handler: _Handler) -> _Behavior:
    behavior: _Behavior = getattr(handler, _kind(handler))
    return behavior


def _with_behavior(handler: _Handler, behavior: _Behavior) -> _Handler:
    make = getattr(grpc, f"{_kind(handler)}_rpc_method_handler")
    made: _Handler = make(behavior, handler.request_deserializer, handler.response_serializer)
    return made


def _kind(handler: _Handler) -> str:
    kinds = {False: "unary", True: "stream"}
    return f"{kinds[bool(handler.request_streaming)]}_{kinds[bool(handler.response_streaming)]}"


def _run_in(threads: ThreadPoolExecutor, behavior: _Behavior) -> None:
    behavior.experimental_thread_pool = threads  # type: ignore[attr-defined]
