"""install(): no Shed is ever a 500, wherever it is raised. Through httpx, which raises what an app raises."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, BackgroundTasks, Depends, FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import PlainTextResponse, Response
from starlette.applications import Starlette
from starlette.routing import Route
from tidegate import Gate, Outcome, Priority, Shed
from tidegate.fastapi import install

FULL = Gate("db", limit=0)


def get(app: Any, path: str = "/", *, raises: bool = True, **more: Any) -> httpx.Response:
    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=raises)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path, **more)

    return asyncio.run(request())


def assert_refused(response: httpx.Response, gate: str = "db") -> None:
    assert response.status_code == 503
    assert response.headers["content-type"] == "application/problem+json"
    assert int(response.headers["retry-after"]) == response.json()["retry_after"] >= 1
    assert response.json()["gate"] == gate


# --- where a Shed can come from ------------------------------------------------------------------


def in_handler(app: FastAPI) -> None:
    @app.get("/")
    def handler() -> str:
        with FULL:
            return "unreachable"


def in_async_handler(app: FastAPI) -> None:
    @app.get("/")
    async def handler() -> str:
        async with FULL:
            return "unreachable"


def in_guarded_handler(app: FastAPI) -> None:
    @app.get("/")
    @FULL.guard
    async def handler() -> str:
        return "unreachable"


def in_dependency(app: FastAPI) -> None:
    def session() -> Iterator[None]:
        with FULL:
            yield

    @app.get("/", dependencies=[Depends(session)])
    def handler() -> str:
        return "unreachable"


def in_router(app: FastAPI) -> None:
    router = APIRouter()

    @router.get("/")
    async def handler() -> None:
        FULL.admit().__enter__()

    app.include_router(router)


def in_task_group(app: FastAPI) -> None:
    async def query() -> None:
        async with FULL:
            pass

    @app.get("/")
    async def handler() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(query())
            group.create_task(query())


def in_middleware(app: FastAPI) -> None:
    @app.middleware("http")
    async def gated(request: Request, call_next: Callable[[Request], Any]) -> Response:
        with FULL:
            return await call_next(request)


def behind_middleware(app: FastAPI) -> None:
    in_handler(app)

    @app.middleware("http")
    async def innocent(request: Request, call_next: Callable[[Request], Any]) -> Response:
        return await call_next(request)


PLACES = [
    in_handler,
    in_async_handler,
    in_guarded_handler,
    in_dependency,
    in_router,
    in_task_group,
    in_middleware,
    behind_middleware,
]


@pytest.mark.parametrize("edge", [None, 5])
@pytest.mark.parametrize("late", [False, True], ids=["install last", "install first"])
@pytest.mark.parametrize("place", PLACES)
def test_a_shed_is_a_503_wherever_it_comes_from(
    place: Callable[[FastAPI], None], late: bool, edge: int | None
) -> None:
    app = FastAPI()
    gate = None if edge is None else Gate("edge", limit=edge)
    if late:
        install(app, gate)
    place(app)
    if not late:
        install(app, gate)
    for _ in range(2):
        assert_refused(get(app))
    if gate is not None:
        assert gate.in_flight == 0


def test_what_an_uninstalled_application_does() -> None:
    """The day-one trap that install() is for."""
    app = FastAPI()
    in_handler(app)
    with pytest.raises(Shed):
        get(app)


def test_a_starlette_application() -> None:
    async def endpoint(request: Request) -> Response:
        with FULL:
            return PlainTextResponse("unreachable")

    app = Starlette(routes=[Route("/", endpoint)])
    install(app)
    assert_refused(get(app))


def test_a_mounted_application_needs_its_own_install() -> None:
    """It has its own outermost layer, which answers with a 500 before the outer application learns of it."""
    outer, inner = FastAPI(), FastAPI()
    in_handler(inner)
    outer.mount("/inner", inner)
    install(outer)
    assert get(outer, "/inner/", raises=False).status_code == 500

    outer, inner = FastAPI(), FastAPI()
    in_handler(inner)
    outer.mount("/inner", inner)
    install(outer, Gate("edge", limit=1))
    install(inner)
    assert_refused(get(outer, "/inner/"))


# --- the gate at the edge --------------------------------------------------------------------------


def gated(gate: Gate, **more: Any) -> FastAPI:
    app = FastAPI()

    @app.get("/")
    @app.get("/healthz")
    @app.get("/up")
    @app.get("/reports")
    def handler() -> int:
        return gate.in_flight

    install(app, gate, **more)
    return app


def test_the_edge_gate_admits_and_sheds() -> None:
    gate = Gate("edge", limit=1)
    app = gated(gate)
    assert get(app).json() == 1
    with gate:
        assert_refused(get(app), "edge")
    assert get(app).status_code == 200
    assert gate.in_flight == 0


def test_health_paths() -> None:
    gate = Gate("edge", limit=0)
    assert get(gated(gate), "/healthz").json() == 0
    assert get(gated(gate), "/up").status_code == 503
    assert get(gated(gate, health_paths=["/up"]), "/up").status_code == 200
    assert get(gated(gate, health_paths=["/up"]), "/healthz").status_code == 503
    assert get(gated(gate, health_paths=()), "/healthz").status_code == 503


def test_priority() -> None:
    gate = Gate("edge", limit=10)
    app = gated(gate, priority=lambda scope: "sheddable" if scope["path"] == "/reports" else None)
    get(app, "/reports")
    get(app)
    assert gate.stats().admitted[Priority.SHEDDABLE] == 1
    assert gate.stats().admitted[Priority.CRITICAL] == 1


def test_a_dependency_that_holds_the_gate_gives_it_back() -> None:
    """FastAPI enters and leaves it in different contexts, a sync one in different threads, too."""
    gate = Gate("db", limit=1)
    app = FastAPI()

    def session() -> Iterator[int]:
        with gate:
            yield gate.in_flight

    async def async_session() -> Any:
        async with gate.admit(priority="sheddable"):
            yield gate.in_flight

    @app.get("/sync")
    def sync_handler(held: int = Depends(session)) -> int:
        return held

    @app.get("/async")
    async def async_handler(held: int = Depends(async_session)) -> int:
        return held

    install(app)
    for _ in range(10):
        assert get(app, "/sync").json() == 1
        assert gate.in_flight == 0
    with gate:
        assert_refused(get(app, "/async"))


def test_cors_added_after_install_lets_browsers_read_the_503() -> None:
    app = gated(Gate("edge", limit=0))
    app.add_middleware(CORSMiddleware, allow_origins=["*"])
    response = get(app, headers={"origin": "http://elsewhere"})
    assert_refused(response, "edge")
    assert response.headers["access-control-allow-origin"] == "*"


def test_a_shed_in_a_background_task_comes_too_late_for_an_answer() -> None:
    app = FastAPI()
    gate = Gate("edge", limit=1)

    def background() -> None:
        with FULL:
            pass

    @app.get("/")
    def handler(tasks: BackgroundTasks) -> str:
        tasks.add_task(background)
        return "ok"

    install(app, gate)
    with pytest.raises(RuntimeError, match="response already started") as caught:
        get(app)
    assert isinstance(caught.value.__cause__, Shed)
    assert gate.in_flight == 0


def test_other_errors_stay_what_they_are() -> None:
    app = FastAPI()
    gate = Gate("edge", limit=1)

    @app.get("/")
    def handler() -> None:
        raise TimeoutError("the database")

    install(app, gate)
    with pytest.raises(TimeoutError):
        get(app)
    assert gate.stats().released[Outcome.OVERLOAD] == 1


def test_install_after_the_start_is_refused() -> None:
    app = FastAPI()
    get(app)
    with pytest.raises(RuntimeError, match="before the application starts"):
        install(app)


def test_two_gates_but_not_one_gate_twice() -> None:
    edge, cpu = Gate("edge", limit=1), Gate("cpu", limit=1)
    app = gated(edge)
    install(app, cpu)
    with pytest.raises(RuntimeError, match="has this gate already"):
        install(app, edge)
    assert get(app).status_code == 200
    for full in (edge, cpu):
        with full:
            assert_refused(get(app), full.name)
    assert (edge.in_flight, cpu.in_flight) == (0, 0)


@pytest.mark.parametrize("place", PLACES)
def test_the_status_is_that_of_every_shed(place: Callable[[FastAPI], None]) -> None:
    app = FastAPI()
    place(app)
    install(app, status=429)
    assert get(app).status_code == 429
