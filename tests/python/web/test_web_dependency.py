"""Depends(admitted(gate)): whichever contexts and threads FastAPI runs its two halves in."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Annotated, Any

import httpx
import pytest
from driver import Connection, http, run
from fastapi import BackgroundTasks, Depends, FastAPI
from fastapi.responses import StreamingResponse
from gatekit import assert_at_rest, released
from tidegate import Gate, Permit, Priority, Shed, use_priority
from tidegate._held import check_out
from tidegate.fastapi import admitted, install

HOOK = "fastapi-dependency"


class Service:
    def __init__(self, **installed: Any) -> None:
        self.gate = gate = Gate("db", limit=1)
        self.app = app = FastAPI()
        self.seen: list[int] = []
        self.inside = asyncio.Event()
        permit = Annotated[Permit, Depends(admitted(gate))]
        less = Annotated[Permit, Depends(admitted(gate, priority="sheddable"))]

        @app.get("/sync")
        def sync(held: permit) -> dict[str, int]:
            return {"in_flight": self.query(), "weight": held.weight}

        @app.get("/async")
        async def async_(held: permit) -> dict[str, int]:
            return {"in_flight": await asyncio.to_thread(self.query), "weight": held.weight}

        @app.get("/twice")
        async def twice(one: permit, two: less) -> int:
            return self.query()

        @app.get("/less")
        async def less_(held: less) -> str:
            return held.priority

        @app.get("/bug")
        def bug(held: permit) -> None:
            raise ValueError("a bug")

        @app.get("/stop")
        async def stop(held: permit) -> None:
            raise Stop

        @app.get("/timeout")
        async def timeout(held: permit) -> None:
            raise TimeoutError

        @app.get("/wait")
        async def wait(held: permit) -> None:
            self.inside.set()
            await asyncio.Event().wait()

        @app.get("/stream")
        def stream(held: permit) -> StreamingResponse:
            return StreamingResponse(self.rows())

        @app.get("/background")
        def background(held: permit, tasks: BackgroundTasks) -> str:
            tasks.add_task(lambda: self.seen.append(gate.in_flight))
            return "ok"

        install(app, **installed)

    def query(self) -> int:
        hold = check_out(self.gate)
        try:
            return self.gate.in_flight
        finally:
            hold.leave()

    def rows(self) -> Iterator[str]:
        for _ in range(3):
            self.seen.append(self.gate.in_flight)
            yield "row"

    def get(self, path: str) -> httpx.Response:
        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.get(path)

        return asyncio.run(request())


class Stop(BaseException):
    pass


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.mark.parametrize("path", ["/sync", "/async"])
def test_it_is_held_while_the_route_runs_and_what_is_inside_is_free(service: Service, path: str) -> None:
    for _ in range(20):
        assert service.get(path).json() == {"in_flight": 1, "weight": 1}
        assert service.gate.in_flight == 0
    assert sum(service.gate.stats().admitted.values()) == 20
    assert_at_rest(service.gate)


@pytest.mark.parametrize("path", ["/sync", "/async"])
def test_a_full_gate_is_a_503(service: Service, path: str) -> None:
    with service.gate:
        response = service.get(path)
    assert (response.status_code, response.json()["gate"]) == (503, "db")
    assert_at_rest(service.gate)


@pytest.mark.leak(HOOK, "nested")
def test_with_middleware_and_twice_it_is_counted_once() -> None:
    for path in ("/sync", "/async", "/twice"):
        bare, installed = Service(), Service()
        install(installed.app, installed.gate)
        for service in (bare, installed):
            assert service.get(path).status_code == 200
            assert sum(service.gate.stats().admitted.values()) == 1
            assert_at_rest(service.gate)


def test_a_priority_of_its_own(service: Service) -> None:
    assert service.get("/less").json() == "sheddable"
    assert service.gate.stats().admitted[Priority.SHEDDABLE] == 1


@pytest.mark.parametrize(
    ("path", "error", "outcome"),
    [
        pytest.param("/bug", ValueError, "success", marks=pytest.mark.leak(HOOK, "exception")),
        pytest.param("/stop", Stop, "ignore", marks=pytest.mark.leak(HOOK, "base-exception")),
        pytest.param("/timeout", TimeoutError, "overload", marks=pytest.mark.leak(HOOK, "timeout")),
    ],
)
def test_what_the_route_raises_frees_it(
    service: Service, path: str, error: type[BaseException], outcome: str
) -> None:
    for _ in range(3):
        with pytest.raises(error):
            service.get(path)
        assert service.gate.in_flight == 0
    assert released(service.gate.stats()) == {outcome: 3}
    assert_at_rest(service.gate)


@pytest.mark.leak(HOOK, "cancel-after")
def test_a_cancelled_route_frees_it(service: Service) -> None:
    async def scenario() -> None:
        connection = Connection(service.app, http("/wait"))
        connection.push("http.request", body=b"", more_body=False)
        await service.inside.wait()
        assert service.gate.in_flight == 1
        connection.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connection.task

    run(scenario)
    assert released(service.gate.stats()) == {"ignore": 1}
    assert_at_rest(service.gate)


@pytest.mark.leak(HOOK, "cancel-before")
def test_cancelled_before_the_route_ran(service: Service) -> None:
    async def scenario() -> None:
        connection = Connection(service.app, http("/wait"))
        connection.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connection.task

    run(scenario)
    assert released(service.gate.stats()) == {}
    assert_at_rest(service.gate)


def test_d07_it_ends_after_a_streamed_body(service: Service) -> None:
    """With the FastAPI of these tests; the docstring of `admitted` tells about earlier ones."""
    assert service.get("/stream").text == "rowrowrow"
    assert service.seen == [1, 1, 1]
    assert_at_rest(service.gate)


@pytest.mark.leak(HOOK, "client-gone")
def test_a_client_that_leaves_in_the_middle_of_the_stream(service: Service) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        while True:
            yield b"chunk"
            await asyncio.sleep(0)

    service.rows = chunks  # type: ignore[assignment]

    async def scenario() -> None:
        connection = Connection(service.app, http("/stream"))
        connection.push("http.request", body=b"", more_body=False)
        for _ in range(3):
            await connection.next()
        assert service.gate.in_flight == 1
        connection.push("http.disconnect")
        await connection.end()

    run(scenario)
    assert_at_rest(service.gate)


def test_background_tasks_run_inside_or_outside_as_fastapi_has_it(service: Service) -> None:
    """With the FastAPI of these tests: inside."""
    assert service.get("/background").status_code == 200
    assert service.seen == [1]
    assert_at_rest(service.gate)


def test_no_context_variable_is_lost() -> None:
    """Finding C: a dependency's two halves run in different contexts, and its route in a third."""
    variable: ContextVar[str] = ContextVar("mine", default="lost")
    gate, db = Gate("edge", limit=1), Gate("db", limit=20)
    app = FastAPI()

    async def mine() -> AsyncIterator[None]:
        variable.set("kept")
        with use_priority("sheddable"):
            yield

    @app.get("/", dependencies=[Depends(mine), Depends(admitted(gate))])
    def route() -> str:
        with db:
            return variable.get()

    install(app)
    service = Service()
    service.app = app
    for _ in range(50):
        assert service.get("/").json() == "kept"
    assert db.stats().admitted[Priority.SHEDDABLE] == 50
    assert gate.stats().admitted[Priority.SHEDDABLE] == 50
    for each in (gate, db):
        assert_at_rest(each)


def test_a_shed_of_the_dependency_leaves_nothing() -> None:
    async def scenario() -> None:
        gate = Gate("db", limit=0)
        dependency = admitted(gate)()
        with pytest.raises(Shed):
            await anext(dependency)
        assert_at_rest(gate)

    run(scenario)
