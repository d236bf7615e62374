"""Each row of the table in docs/priorities.md: where priority and permit follow the work, and where not."""

import asyncio
import re
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from driver import answer, http, ok, run
from fastapi.concurrency import run_in_threadpool
from gatekit import assert_at_rest
from starlette.background import BackgroundTask
from tidegate import Gate, use_priority
from tidegate._context import current
from tidegate._held import joined
from tidegate.asgi import GateMiddleware, Receive, Scope, Send

DOCS = Path(__file__).parents[3] / "docs" / "priorities.md"

Work = Callable[[], Any]
Way = Callable[[Work], Awaitable[Any]]


async def called(work: Work) -> Any:
    return work()


async def task(work: Work) -> Any:
    return await asyncio.create_task(called(work))


async def task_group(work: Work) -> Any:
    async with asyncio.TaskGroup() as group:
        started = group.create_task(called(work))
    return started.result()


async def anyio_task_group(work: Work) -> Any:
    results = []

    async def run() -> None:
        results.append(work())

    async with anyio.create_task_group() as group:
        group.start_soon(run)
    return results[0]


async def call_soon(work: Work) -> Any:
    loop = asyncio.get_running_loop()
    result = loop.create_future()
    loop.call_soon(lambda: result.set_result(work()))
    return await result


async def async_to_sync_in_thread(work: Work) -> Any:
    return await sync_to_async(async_to_sync(partial(called, work)))()


async def background_task(work: Work) -> Any:
    results = []
    await BackgroundTask(lambda: results.append(work()))()
    return results[0]


async def copied(work: Work) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, work).result()


async def run_in_executor(work: Work) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, work)


async def executor(work: Work) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


async def thread(work: Work) -> Any:
    results = []
    started = threading.Thread(target=lambda: results.append(work()))
    started.start()
    started.join()
    return results[0]


async def from_another_thread(work: Work) -> Any:
    loop, result = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def in_thread() -> None:
        loop.call_soon_threadsafe(lambda: result.set_result(work()))

    started = threading.Thread(target=in_thread)
    started.start()
    started.join()
    return await result


async def process(work: Work) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(priority_in_process).result(), False


def priority_in_process() -> str | None:
    return current.get()


# As the table of the docs names them.
FOLLOWS: dict[str, Way] = {
    "`asyncio.create_task`": task,
    "`asyncio.TaskGroup`": task_group,
    "`anyio` task groups": anyio_task_group,
    "`asyncio.to_thread`": asyncio.to_thread,
    "`anyio.to_thread.run_sync`": anyio.to_thread.run_sync,
    "Starlette's `run_in_threadpool`": run_in_threadpool,
    "FastAPI's and Starlette's background tasks": background_task,
    "asgiref's `sync_to_async`": lambda work: sync_to_async(work)(),
    "asgiref's `async_to_sync`": async_to_sync_in_thread,
    "`loop.call_soon`": call_soon,
    "`pool.submit(copy_context().run, work)`": copied,
}
LOST: dict[str, Way] = {
    "`loop.run_in_executor`": run_in_executor,
    "`ThreadPoolExecutor.submit`": executor,
    "`threading.Thread`": thread,
    "`loop.call_soon_threadsafe` from such a thread": from_another_thread,
    "`ProcessPoolExecutor`": process,
}


def seen_by(way: Way) -> tuple[str | None, bool]:
    """The priority, and whether the permit is joined, of what a request does in this way."""
    gate = Gate("edge", limit=1)
    seen: list[Any] = []

    def work() -> tuple[str | None, bool]:
        hold = joined(gate)
        if hold is not None:
            hold.leave()
        return current.get(), hold is not None

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(await way(work))
        await ok(scope, receive, send)

    run(lambda: answer(GateMiddleware(app, gate, priority="sheddable"), http()))  # type: ignore[arg-type]
    assert_at_rest(gate)
    return seen[0]


@pytest.mark.parametrize("name", FOLLOWS)
def test_it_follows(name: str) -> None:
    assert seen_by(FOLLOWS[name]) == ("sheddable", True)


@pytest.mark.skipif(
    bool(getattr(sys.flags, "thread_inherit_context", 0)),
    reason="threads of this interpreter inherit contexts",
)
@pytest.mark.parametrize("name", LOST)
def test_it_is_lost(name: str) -> None:
    assert seen_by(LOST[name]) == (None, False)


def test_the_table_of_the_docs_has_these_rows() -> None:
    table = dict(re.findall(r"^\| (.+?) \| (yes|no)\b", DOCS.read_text(encoding="utf-8"), re.MULTILINE))
    assert {name for name, follows in table.items() if follows == "yes"} == {*FOLLOWS}
    # Celery has a worker of its own: its tests show what reaches a task.
    assert {name for name, follows in table.items() if follows == "no"} == {*LOST, "Celery tasks"}


def test_use_priority_alone_follows_in_the_same_way() -> None:
    async def scenario() -> None:
        with use_priority("sheddable"):
            for name, way in FOLLOWS.items():
                assert await way(current.get) == "sheddable", name

    run(scenario)
