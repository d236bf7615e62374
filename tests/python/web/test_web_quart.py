"""A real Quart application behind GateMiddleware, with its own way to answer a Shed."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from driver import DENIAL, Connection, answer, assert_refused, http, run, status_of, websocket
from gatekit import assert_at_rest, released, until
from loopback import serving
from quart import Quart, Response
from quart import websocket as quart_websocket
from tidegate import Gate, Shed
from tidegate._held import check_out
from tidegate.asgi import GateMiddleware
from tidegate.http import shed_response


class Stop(BaseException):
    pass


class Service:
    def __init__(self) -> None:
        self.gate = Gate("edge", limit=1)
        self.db = Gate("db", limit=10)
        self.app = app = Quart(__name__)
        app.asgi_app = GateMiddleware(app.asgi_app, self.gate)  # type: ignore[method-assign]
        self.inside = asyncio.Event()

        @app.errorhandler(Shed)
        async def try_again_later(shed: Shed) -> tuple[bytes, int, dict[str, str]]:
            status, headers, body = shed_response(shed)
            return body, status, headers

        @app.get("/")
        @app.get("/healthz")
        async def index() -> str:
            return str(self.gate.in_flight)

        @app.get("/db")
        async def query() -> str:
            with self.db:
                return str(self.nested())

        @app.get("/sync")
        def sync_view() -> str:  # Quart runs it in a thread
            return str(self.nested())

        @app.get("/bug")
        async def bug() -> str:
            raise ValueError("a bug")

        @app.get("/exit")
        async def leave() -> str:
            raise Stop

        @app.get("/timeout")
        async def timeout() -> str:
            async with asyncio.timeout(0):
                await asyncio.sleep(1)
            return "unreachable"

        @app.get("/wait")
        async def wait() -> str:
            self.inside.set()
            await asyncio.Event().wait()
            return "unreachable"

        @app.get("/endless")
        async def endless() -> Response:
            response = Response(self.chunks())
            response.timeout = None
            return response

        @app.websocket("/echo")
        async def echo() -> None:
            while True:
                await quart_websocket.send(await quart_websocket.receive())

        @app.websocket("/ws-db")
        async def ws_db() -> None:
            with self.db:
                await quart_websocket.accept()

    def nested(self) -> int:
        hold = check_out(self.gate)
        try:
            return self.gate.in_flight
        finally:
            hold.leave()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1024
            await asyncio.sleep(0)


@pytest.fixture
def service() -> Service:
    return Service()


def get(service: Service, path: str) -> tuple[int, bytes]:
    result = []

    async def scenario() -> None:
        start, *parts = await answer(service.app, http(path))
        result.append((start["status"], b"".join(part["body"] for part in parts)))

    run(scenario)
    return result[0]


@pytest.mark.leak("quart", "nested")
def test_admits_sheds_and_counts_once(service: Service) -> None:
    for path in ("/", "/db", "/sync"):
        assert get(service, path) == (200, b"1")
    with service.gate:
        run(lambda: refused(service, "/"))
        assert get(service, "/healthz") == (200, b"1")
    assert_at_rest(service.gate)


def test_a_shed_in_a_view(service: Service) -> None:
    service.db.set_limit(0)
    run(lambda: refused(service, "/db"))
    assert_at_rest(service.gate)


async def refused(service: Service, path: str) -> None:
    messages = await answer(service.app, http(path))
    body = b"".join(message.get("body", b"") for message in messages[1:])
    assert_refused([messages[0], {"type": "http.response.body", "body": body}])


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/bug", marks=pytest.mark.leak("quart", "exception")),
        pytest.param("/timeout", marks=pytest.mark.leak("quart", "timeout")),
    ],
)
def test_errors_free_the_permit(service: Service, path: str) -> None:
    assert get(service, path)[0] == 500
    assert_at_rest(service.gate)


@pytest.mark.leak("quart", "base-exception")
def test_what_is_no_exception_frees_the_permit(service: Service) -> None:
    with pytest.raises(Stop):
        get(service, "/exit")
    assert_at_rest(service.gate)


@pytest.mark.leak("quart", "cancel-after")
def test_a_client_that_leaves_while_the_view_runs(service: Service) -> None:
    async def scenario() -> None:
        connection = Connection(service.app, http("/wait"))
        connection.push("http.request", body=b"", more_body=False)
        await service.inside.wait()
        connection.push("http.disconnect")
        await connection.end()

    run(scenario)
    assert_at_rest(service.gate)


@pytest.mark.leak("quart", "client-gone")
def test_a_stream_holds_its_permit_until_its_client_leaves(service: Service) -> None:
    with serving(service.app, lifespan="off") as address:
        with httpx.stream("GET", f"http://{address}/endless") as response:
            body = response.iter_raw(1024)
            for _ in range(2):
                next(body)
                assert service.gate.in_flight == 1
                assert httpx.get(f"http://{address}/").status_code == 503
        until(lambda: service.gate.in_flight == 0)
    assert sum(released(service.gate.stats()).values()) == 1
    assert_at_rest(service.gate)


def test_a_websocket(service: Service) -> None:
    async def scenario() -> None:
        connection = Connection(service.app, websocket("/echo"))
        connection.push("websocket.connect")
        connection.push("websocket.receive", text="hello")
        while (message := await connection.next())["type"] != "websocket.send":
            pass
        assert message["text"] == "hello"
        assert service.gate.in_flight == 1
        assert await status_of(service.app, http()) == 503
        denied = Connection(service.app, websocket("/echo", DENIAL))
        denied.push("websocket.connect")
        assert_refused(await denied.end(), "websocket.http.response")
        connection.push("websocket.disconnect", code=1006)
        await connection.end()

    run(scenario)
    assert_at_rest(service.gate)


def test_a_shed_inside_a_websocket_before_it_is_accepted(service: Service) -> None:
    async def scenario() -> None:
        service.db.set_limit(0)
        denied = Connection(service.app, websocket("/ws-db", DENIAL))
        denied.push("websocket.connect")
        start, *_ = await denied.end()
        assert (start["type"], start["status"]) == ("websocket.http.response.start", 503)

    run(scenario)
    assert_at_rest(service.gate)
