"""D07: a permit is held until the body has ended, not until the response object was made."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from driver import Connection, assert_refused, http, ok, run, status_of
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from tidegate import Gate
from tidegate.asgi import GateMiddleware, Receive, Scope, Send


class Buffering(BaseHTTPMiddleware):
    """Runs the application in a task of its own, as most middleware out there does."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        return await call_next(request)


class Stream:
    """Five chunks, each sent when the test says so."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.go = asyncio.Semaphore(0)
        self.fail_at = fail_at

    async def chunks(self) -> AsyncIterator[bytes]:
        for number in range(1, 6):
            await self.go.acquire()
            if number == self.fail_at:
                raise ValueError("no more")
            yield b"chunk"

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        async for chunk in self.chunks():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    def application(self, kind: str):
        if kind == "plain":
            return self.asgi
        middleware = [Middleware(Buffering)] if kind == "buffering" else []
        return Starlette(routes=[Route("/", self.endpoint)], middleware=middleware)

    async def endpoint(self, request: Request) -> Response:
        return StreamingResponse(self.chunks())


@pytest.mark.parametrize("kind", ["plain", "starlette", "buffering"])
def test_a_streamed_body_keeps_its_permit(kind: str) -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        stream = Stream()
        app = GateMiddleware(stream.application(kind), gate)
        first = Connection(app, http())
        first.push("http.request", body=b"", more_body=False)
        assert (await first.next())["status"] == 200
        for _ in range(5):
            assert gate.in_flight == 1
            assert_refused(await Connection(app, http()).end())
            stream.go.release()
            assert (await first.next())["body"] == b"chunk"
        await first.end()
        assert gate.in_flight == 0
        assert await status_of(GateMiddleware(ok, gate), http()) == 200

    run(scenario)


@pytest.mark.parametrize("kind", ["starlette", "buffering"])
def test_a_client_that_leaves_after_chunk_2_frees_the_permit(kind: str) -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        stream = Stream()
        first = Connection(GateMiddleware(stream.application(kind), gate), http())
        first.push("http.request", body=b"", more_body=False)
        await first.next()
        for _ in range(2):
            stream.go.release()
            await first.next()
        assert gate.in_flight == 1
        first.push("http.disconnect")
        await first.end()  # the third chunk never comes
        assert gate.in_flight == 0

    run(scenario)


@pytest.mark.parametrize("kind", ["plain", "starlette", "buffering"])
def test_a_body_that_raises_at_chunk_3_frees_the_permit(kind: str) -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        stream = Stream(fail_at=3)
        first = Connection(GateMiddleware(stream.application(kind), gate), http())
        first.push("http.request", body=b"", more_body=False)
        for _ in range(3):
            stream.go.release()
        with pytest.raises(ValueError, match="no more"):
            await first.end()
        assert gate.in_flight == 0

    run(scenario)


@pytest.mark.parametrize("middleware", [[], [Middleware(Buffering)]])
def test_background_tasks_count_until_they_end(middleware: list[Middleware]) -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        started, finish = asyncio.Event(), asyncio.Event()

        async def background() -> None:
            started.set()
            await finish.wait()

        async def endpoint(request: Request) -> Response:
            return PlainTextResponse("ok", background=BackgroundTask(background))

        app = GateMiddleware(Starlette(routes=[Route("/", endpoint)], middleware=middleware), gate)
        first = Connection(app, http())
        first.push("http.request", body=b"", more_body=False)
        assert (await first.next())["status"] == 200
        assert (await first.next())["body"] == b"ok"  # the client has it all
        await started.wait()
        assert gate.in_flight == 1
        finish.set()
        await first.end()
        assert gate.in_flight == 0

    run(scenario)
