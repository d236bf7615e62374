"""A Django project with a gate at its edge and one at its database, made anew for each test."""

import asyncio
import io
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path
from tidegate import Gate
from tidegate._held import check_out

web: Gate
db: Gate
seen: list[int]
inside: threading.Event


def start_anew() -> None:
    global web, db, seen, inside
    web, db = Gate("web", limit=1), Gate("db", limit=20)
    seen = []
    inside = threading.Event()


def priority(request: HttpRequest) -> str | None:
    return request.GET.get("priority")


def query() -> int:
    """What a pool hook does for the gate at the edge, and a query through another gate."""
    hold = check_out(web)
    seen.append(web.in_flight)
    hold.leave()
    with db:
        return len(seen)


def view(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{query()}")


async def async_view(request: HttpRequest) -> HttpResponse:
    await asyncio.to_thread(query)
    return HttpResponse(f"{await sync_to_async(query)()}")


def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{web.in_flight}")


def failing(error: BaseException) -> Callable[[HttpRequest], HttpResponse]:
    def fail(request: HttpRequest) -> HttpResponse:
        raise error

    return fail


def async_failing(error: BaseException) -> Any:
    async def fail(request: HttpRequest) -> HttpResponse:
        raise error

    return fail


async def wait(request: HttpRequest) -> HttpResponse:
    inside.set()
    await asyncio.Event().wait()
    raise AssertionError


def parts() -> Iterator[bytes]:
    for _ in range(3):
        yield b"%d" % query()


async def async_parts() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield b"%d" % await sync_to_async(query)()


def endless() -> Iterator[bytes]:
    while True:
        yield b"x" * 65536


async def async_endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 65536
        await asyncio.sleep(0)


def streaming(made: Callable[[], Any]) -> Callable[[HttpRequest], StreamingHttpResponse]:
    return lambda request: StreamingHttpResponse(made())


def shed_first() -> Iterator[bytes]:
    with db:
        yield b"row"


def file(request: HttpRequest) -> FileResponse:
    return FileResponse(io.BytesIO(b"content"))


class InnerMiddleware:
    """Asks the database before and after the view, as one for sessions does."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        if request.path == "/before":
            with db:
                pass
        response = self.get_response(request)
        if request.path == "/after":
            with db:
                pass
        return response


urlpatterns = [
    path("", view),
    path("async", async_view),
    path("healthz", healthz),
    path("before", view),
    path("after", view),
    path("bug", failing(ValueError("a bug"))),
    path("async-bug", async_failing(ValueError("a bug"))),
    path("timeout", failing(TimeoutError("the database"))),
    path("exit", failing(SystemExit(3))),
    path("async-exit", async_failing(SystemExit(3))),
    path("wait", wait),
    path("parts", streaming(parts)),
    path("async-parts", streaming(async_parts)),
    path("endless", streaming(endless)),
    path("async-endless", streaming(async_endless)),
    path("shed-first", streaming(shed_first)),
    path("file", file),
]
