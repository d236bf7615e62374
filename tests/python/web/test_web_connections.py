"""Connections are not requests: idle ones hold nothing, and cancelled clients leave nothing behind."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from fastapi import FastAPI
from gatekit import assert_at_rest, until
from loopback import serving
from tidegate import Gate
from tidegate.fastapi import install


class Service:
    def __init__(self, limit: int) -> None:
        self.gate = Gate("edge", limit=limit)
        self.app = FastAPI()
        install(self.app, self.gate)

        @self.app.get("/")
        async def quick() -> str:
            await asyncio.sleep(0)
            return "ok"

        @self.app.get("/slow")
        async def slow() -> str:
            await asyncio.sleep(0.005)
            return "ok"


@pytest.fixture(params=["asyncio", "uvloop"])
def service(request: pytest.FixtureRequest) -> Iterator[tuple[Service, str]]:
    service = Service(limit=10)
    with serving(service.app, loop=request.param) as address:
        yield service, address


def test_fifty_idle_connections_hold_nothing(service: tuple[Service, str]) -> None:
    """uvicorn's own --limit-concurrency counts them."""
    running, address = service
    with ExitStack() as stack:
        # Some have asked once and are kept alive, some never asked, some are in the middle of asking.
        for said in [b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"] * 40 + [b""] * 5 + [b"GET / HTTP/1.1\r\n"] * 5:
            client = stack.enter_context(socket.create_connection(address.split(":")))
            client.sendall(said)
            if said.endswith(b"\r\n\r\n"):
                assert client.recv(4096).startswith(b"HTTP/1.1 200")
        until(lambda: running.gate.in_flight == 0)
        assert httpx.get(f"http://{address}/").status_code == 200
    until(lambda: running.gate.in_flight == 0)
    assert_at_rest(running.gate)


def test_pipelined_requests_are_counted_one_by_one(service: tuple[Service, str]) -> None:
    running, address = service
    with socket.create_connection(address.split(":")) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n" * 20)
        client.shutdown(socket.SHUT_WR)
        answered = b"".join(iter(lambda: client.recv(65536), b""))
    assert answered.count(b"HTTP/1.1 200") >= 1
    until(lambda: running.gate.in_flight == 0)
    assert running.gate.stats().high_water == 1
    assert_at_rest(running.gate)


@pytest.mark.leak("asgi", "client-gone")
def test_requests_cancelled_while_their_client_contends_for_connections(service: tuple[Service, str]) -> None:
    """httpcore#1093: after the churn the client's pool and the gate have all their room."""
    running, address = service

    async def scenario() -> None:
        limits = httpx.Limits(max_connections=5)
        async with httpx.AsyncClient(base_url=f"http://{address}", limits=limits, timeout=30) as client:
            for round_ in range(10):
                requests = [asyncio.create_task(client.get("/slow")) for _ in range(15)]
                for turns, request in enumerate(requests):
                    if turns % 3:
                        for _ in range(turns + round_):
                            await asyncio.sleep(0)
                        request.cancel()
                await asyncio.gather(*requests, return_exceptions=True)
            answers = await asyncio.gather(*(client.get("/slow") for _ in range(5)))
            assert [answer.status_code for answer in answers] == [200] * 5

    asyncio.run(scenario())
    until(lambda: running.gate.in_flight == 0)
    assert_at_rest(running.gate)
