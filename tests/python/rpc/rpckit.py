"""Two real gRPC servers, one in threads and one on an event loop, with a service whose steps the test opens.

Messages are bytes, so nothing is generated. The client is the synchronous one for both.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal

import grpc
import grpc.aio
import pytest
from gatekit import PATIENCE
from tidegate import Gate
from tidegate.grpc import AioGateInterceptor, GateInterceptor

Kind = Literal["grpc", "grpc-aio"]
BOTH: tuple[Kind, ...] = ("grpc", "grpc-aio")

SERVICE = "shop.Orders"
CALLS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
HEALTH = "grpc.health.v1.Health"

# A server of a test has nothing to do with the proxy of whoever runs the tests.
OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.so_reuseport", 0)]


def cells(fault: str, kinds: tuple[Kind, ...] = BOTH) -> pytest.MarkDecorator:
    """The test for each kind of server, as a cell of the leak matrix."""
    return pytest.mark.parametrize(
        "kind", [pytest.param(kind, marks=pytest.mark.leak(kind, fault)) for kind in kinds]
    )


both = pytest.mark.parametrize("kind", BOTH)


class Service:
    """Every call runs `on_call`, waits until it is let on, and answers; a stream waits before each message.

    Hooks must not block; on the event loop they may be coroutines.
    """

    messages = 3

    def __init__(
        self, on_call: Callable[[Any], Any] | None = None, on_message: Callable[[int], Any] | None = None
    ):
        self.on_call = on_call or (lambda _context: None)
        self.on_message = on_message or (lambda _number: None)
        self.running = 0
        self._doors = threading.Semaphore(0)
        self._open: Callable[[], object] = self._doors.release

    def let_on(self, steps: int = 1) -> None:
        """Let calls go so many steps further, in any order."""
        for _ in range(steps):
            self._open()

    def handlers(self) -> grpc.GenericRpcHandler:
        return _handlers(self._unary, self._stream)

    def async_handlers(self, loop: asyncio.AbstractEventLoop) -> grpc.GenericRpcHandler:
        self._async_doors = asyncio.Semaphore(0)
        self._open = lambda: loop.call_soon_threadsafe(self._async_doors.release)
        return _handlers(self._async_unary, self._async_stream)

    def _unary(self, _messages: Any, context: Any) -> bytes:
        self.running += 1
        try:
            self.on_call(context)
            assert self._doors.acquire(timeout=PATIENCE)
            return b"done"
        finally:
            self.running -= 1

    def _stream(self, _messages: Any, context: Any) -> Iterator[bytes]:
        self.running += 1
        try:
            self.on_call(context)
            for number in range(1, self.messages + 1):
                assert self._doors.acquire(timeout=PATIENCE)
                self.on_message(number)
                yield b"message"
        finally:
            self.running -= 1

    async def _async_unary(self, _messages: Any, context: Any) -> bytes:
        self.running += 1
        try:
            await _maybe(self.on_call(context))
            await self._async_doors.acquire()
            return b"done"
        finally:
            self.running -= 1

    async def _async_stream(self, _messages: Any, context: Any) -> AsyncIterator[bytes]:
        self.running += 1
        try:
            await _maybe(self.on_call(context))
            for number in range(1, self.messages + 1):
                await self._async_doors.acquire()
                await _maybe(self.on_message(number))
                yield b"message"
        finally:
            self.running -= 1


async def _maybe(value: Any) -> None:
    if inspect.isawaitable(value):
        await value


def _handlers(unary: Any, stream: Any) -> grpc.GenericRpcHandler:
    methods = {
        call: getattr(grpc, f"{call}_rpc_method_handler")(stream if call.endswith("stream") else unary)
        for call in CALLS
    }
    return grpc.method_handlers_generic_handler(SERVICE, methods)


class Call:
    """A call under way, of whatever kind."""

    def __init__(self, native: Any, *, streams: bool) -> None:
        self.native = native
        self._streams = streams

    def next(self) -> bytes:
        return next(self.native)

    def answers(self) -> list[bytes]:
        """All that come until the end."""
        return list(self.native) if self._streams else [self.native.result()]

    def error(self) -> Any:
        """What it ended with."""
        with pytest.raises((grpc.RpcError, grpc.FutureCancelledError)) as caught:
            self.answers()
        return caught.value

    def code(self) -> grpc.StatusCode:
        return self.native.code()

    def cancel(self) -> None:
        self.native.cancel()


class Client:
    """Calls to one server."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def start(
        self, call: str = "unary_unary", method: str | None = None, timeout: float = PATIENCE, **more: Any
    ) -> Call:
        requests, _, answers = call.partition("_")
        stub: Any = getattr(self._channel, call)(method or f"/{SERVICE}/{call}")
        message = iter([b"request"]) if requests == "stream" else b"request"
        begin = stub if answers == "stream" else stub.future
        return Call(begin(message, timeout=timeout, **more), streams=answers == "stream")


def assert_shed(error: Any, gate: str = "edge") -> int:
    """The one answer to a shed; returns the milliseconds of its pushback."""
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.details().startswith(f"shed by gate '{gate}' (")
    pushback = dict(error.trailing_metadata())["grpc-retry-pushback-ms"]
    assert str(int(pushback)) == pushback
    return int(pushback)


@contextmanager
def serving(
    kind: Kind,
    gate: Gate | None,
    service: Service,
    *,
    interceptors: Any = (),
    handlers: Any = (),
    threads: int = 4,
    server_options: dict[str, Any] | None = None,
    channel_options: Any = (),
    **options: Any,
) -> Iterator[Client]:
    """A client of a running server whose last interceptor is the gate's; the end cuts off what is running."""
    start = _threaded if kind == "grpc" else _on_a_loop
    intercept = GateInterceptor if kind == "grpc" else AioGateInterceptor
    chain = [*interceptors, *([intercept(gate, **options)] if gate is not None else [])]
    with (
        start(chain, service, handlers, threads, server_options or {}) as address,
        grpc.insecure_channel(address, options=[*OPTIONS, *channel_options]) as channel,
    ):
        yield Client(channel)


@contextmanager
def _threaded(
    chain: Any, service: Service, more: Any, threads: int, options: dict[str, Any]
) -> Iterator[str]:
    with ThreadPoolExecutor(threads) as pool:
        server = grpc.server(pool, [service.handlers(), *more], chain, options=OPTIONS, **options)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            stopped = server.stop(grace=0)
            service.let_on(1_000)  # whoever still waits in a thread
            assert stopped.wait(PATIENCE)


@contextmanager
def _on_a_loop(
    chain: Any, service: Service, more: Any, threads: int, options: dict[str, Any]
) -> Iterator[str]:
    ready: Any = threading.Event()
    started: dict[str, Any] = {}

    async def main() -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        pool = ThreadPoolExecutor(threads)
        handlers = [service.async_handlers(loop), *more]
        server = grpc.aio.server(pool, handlers, chain, options=OPTIONS, **options)
        started["port"] = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        started["stop"] = lambda: loop.call_soon_threadsafe(stop.set)
        ready.set()
        await stop.wait()
        await server.stop(grace=0)
        await asyncio.to_thread(pool.shutdown)  # its threads need the loop to end

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    try:
        assert ready.wait(PATIENCE), "the server did not start"
        yield f"127.0.0.1:{started['port']}"
    finally:
        started["stop"]()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server did not stop"
