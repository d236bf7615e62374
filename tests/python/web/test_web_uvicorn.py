"""The middleware behind a real server, over HTTP and websockets.

A client has its answer a moment before the server gives the permit back. So tests shut a gate by its limit,
which does not depend on what is still inside.
"""

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import Response, StreamingResponse
from loopback import serving
from tidegate import Gate
from tidegate.fastapi import install
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect


class Service:
    """An application with a gate at its edge and one at its database."""

    def __init__(self) -> None:
        self.edge = Gate("edge", limit=10)
        self.db = Gate("db", limit=10)
        self.app = app = FastAPI()
        install(app, self.edge)

        @app.middleware("http")  # runs the handlers in a task of its own; added after install on purpose
        async def innocent(request: Request, call_next) -> Response:
            return await call_next(request)

        @app.get("/healthz")
        def health() -> str:
            return "ok"

        @app.get("/db")
        def query() -> str:
            with self.db:
                return "ok"

        @app.get("/endless")
        async def endless() -> Response:
            return StreamingResponse(self.chunks())

        @app.websocket("/echo")
        async def echo(websocket: WebSocket) -> None:
            await websocket.accept()
            try:
                while True:
                    await websocket.send_text(await websocket.receive_text())
            except WebSocketDisconnect:
                pass

        @app.websocket("/db")
        async def socket_query(websocket: WebSocket) -> None:
            await websocket.accept()
            await websocket.receive_text()
            with self.db:
                await websocket.send_text("ok")

        @app.websocket("/db-first")
        async def query_first(websocket: WebSocket) -> None:
            with self.db:
                await websocket.accept()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1024
            await asyncio.sleep(0)

    def assert_at_rest(self) -> None:
        """Within a second nobody is inside. (This closes the gates: it ends a test.)"""
        assert self.edge.drain(1)
        assert self.db.drain(1)


@pytest.fixture(params=["asyncio", "uvloop"])
def service(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> Iterator[tuple[Service, str]]:
    service = Service()
    with serving(service.app, loop=request.param) as address:
        yield service, address
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    # What uvicorn says of a refusal by the extension, if the connection is not gone by then (uvicorn#3138).
    assert set(errors) <= {"ASGI callable returned without completing handshake."}


def test_over_http(service: tuple[Service, str]) -> None:
    running, address = service
    with httpx.Client(base_url=f"http://{address}") as client:
        assert client.get("/db").status_code == 200
        running.edge.set_limit(0)
        refused = client.get("/db")
        assert refused.json()["gate"] == "edge"
        assert client.get("/healthz").status_code == 200
        running.edge.set_limit(10)
        running.db.set_limit(0)
        for _ in range(3):
            refused = client.get("/db")
            assert refused.status_code == 503
            assert refused.json()["gate"] == "db"
            assert int(refused.headers["retry-after"]) >= 1
        running.db.set_limit(10)
        assert client.get("/db").status_code == 200  # the same connection lives on
    running.assert_at_rest()


def test_a_refused_upload_and_a_refused_head(service: tuple[Service, str]) -> None:
    running, address = service
    running.edge.set_limit(0)
    with httpx.Client(base_url=f"http://{address}") as client:
        assert client.post("/db", content=b"x" * 100_000).status_code == 503
        head = client.head("/db")
        assert (head.status_code, head.content) == (503, b"")
    running.assert_at_rest()


def test_a_stream_holds_its_permit_until_its_client_leaves(
    service: tuple[Service, str],
) -> None:
    running, address = service
    running.edge.set_limit(1)
    with httpx.stream("GET", f"http://{address}/endless") as response:
        assert response.status_code == 200
        body = response.iter_raw(1024)
        for _ in range(2):
            next(body)
            assert running.edge.in_flight == 1
            assert httpx.get(f"http://{address}/db").status_code == 503
    # Leaving the block closed the connection in the middle of the body.
    running.assert_at_rest()


def test_websocket_echo_holds_one_permit(service: tuple[Service, str]) -> None:
    running, address = service
    running.edge.set_limit(1)
    with connect(f"ws://{address}/echo") as client:
        client.send("hello")
        assert client.recv(5) == "hello"
        assert running.edge.in_flight == 1
        assert httpx.get(f"http://{address}/db").status_code == 503
    running.assert_at_rest()


def test_websocket_refused_in_the_handshake(service: tuple[Service, str]) -> None:
    running, address = service
    running.db.set_limit(0)
    assert_handshake_refused(address, "/db-first", b'"db"')
    running.edge.set_limit(0)
    assert_handshake_refused(address, "/echo", b'"edge"')
    running.assert_at_rest()


def assert_handshake_refused(address: str, path: str, gate: bytes) -> None:
    with pytest.raises(InvalidStatus) as caught, connect(f"ws://{address}{path}"):
        pass
    response = caught.value.response
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) >= 1
    assert gate in response.body


def test_websocket_shed_after_accept_is_told_to_try_again_later(service: tuple[Service, str]) -> None:
    running, address = service
    running.db.set_limit(0)
    with connect(f"ws://{address}/db") as client:
        client.send("query")
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(5)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1013
    assert caught.value.rcvd.reason.startswith("try again in ")
    running.assert_at_rest()


def test_a_websocket_client_that_vanishes_gives_its_permit_back(service: tuple[Service, str]) -> None:
    running, address = service
    with socket.create_connection(address.split(":")) as client:
        client.sendall(
            b"GET /echo HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert client.recv(1024).startswith(b"HTTP/1.1 101")
        assert running.edge.in_flight == 1
        # No close frame and no FIN, but a reset, as after a crash.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    running.assert_at_rest()
