"""``use_priority`` and the priority that nobody asked for."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import trio
from fastapi import Depends, FastAPI
from gatekit import assert_at_rest, in_thread, output_of
from tidegate import ConfigError, Gate, Priority, use_priority


@pytest.fixture
def gate() -> Gate:
    return Gate("db", limit=10)


def seen(gate: Gate) -> Priority:
    """The priority that a request without one gets here."""
    with gate.admit() as permit:
        return permit.priority


def test_everything_called_inside_uses_it(gate: Gate) -> None:
    with use_priority("sheddable") as nothing:
        assert nothing is None
        assert seen(gate) == "sheddable"
        assert gate.guard(seen)(gate) == "sheddable"
        with gate:
            pass
        assert gate.retry_after() == 0.0
        assert seen(Gate("other", limit=1)) == "sheddable"
    assert seen(gate) == "critical"
    assert gate.stats().admitted[Priority.SHEDDABLE] == 4  # guard and the function it guards


def test_a_priority_asked_for_goes_first(gate: Gate) -> None:
    with use_priority("sheddable"), gate.admit(priority="critical_plus") as permit:
        assert permit.priority == "critical_plus"


def test_blocks_nest_and_end_in_order_also_by_an_exception(gate: Gate) -> None:
    with use_priority(Priority.SHEDDABLE):
        with pytest.raises(KeyError), use_priority("essential"):
            assert seen(gate) == "critical"
            raise KeyError
        assert seen(gate) == "sheddable"
    assert seen(gate) == "critical"


def test_a_gates_default_is_used_where_no_block_is() -> None:
    gate = Gate("db", limit=10, default_priority="sheddable_plus")
    assert seen(gate) == "sheddable_plus"
    with use_priority("critical"):
        assert seen(gate) == "critical"
    assert Gate("db", limit=1, default_priority=None).default_priority == "critical"


def test_only_what_nobody_asked_for_and_was_admitted_is_a_fallback() -> None:
    gate = Gate("db", limit=1, default_priority="sheddable")
    with gate:
        assert gate.try_admit() is None
    seen(gate)
    assert gate.stats().fallback_priority == 2
    with gate.admit(priority="sheddable"):
        pass
    with use_priority("sheddable"):
        seen(gate)
        with gate:
            pass
    assert gate.stats().fallback_priority == 2


def test_one_object_is_one_block() -> None:
    block = use_priority("sheddable")
    with block, pytest.raises(RuntimeError, match="already entered"):
        block.__enter__()
    with pytest.raises(RuntimeError, match="already entered"), block:
        pass
    use_priority("sheddable").__exit__(None, None, None)  # never entered: nothing to leave


@pytest.mark.parametrize("bad", ["", "urgent", "Critical", "critical\0", "\ud800"])
def test_unknown_names_are_refused(bad: str) -> None:
    with pytest.raises(ConfigError, match="priority must be one of"):
        use_priority(bad)


@pytest.mark.parametrize("bad", [None, 1, True, b"critical", 1.5, ["critical"]], ids=repr)
def test_what_is_no_string_is_refused(bad: object) -> None:
    with pytest.raises(TypeError, match="priority must be a str"):
        use_priority(bad)


# --- where it travels --------------------------------------------------------------------------


def test_it_travels_into_tasks_and_to_thread_and_stays_there(gate: Gate) -> None:
    async def main() -> None:
        with use_priority("sheddable"):
            task = asyncio.create_task(look())
            assert await asyncio.to_thread(seen, gate) == "sheddable"
        assert seen(gate) == "critical"
        assert await task == "sheddable", "a task keeps the context that it was made in"

    async def look() -> Priority:
        await asyncio.sleep(0)
        return seen(gate)

    asyncio.run(main())


def test_tasks_do_not_see_each_others(gate: Gate) -> None:
    async def main() -> None:
        begun = asyncio.Barrier(3)

        async def work(priority: str | None) -> Priority:
            if priority is None:
                await begun.wait()
                return seen(gate)
            with use_priority(priority):
                await begun.wait()
                return seen(gate)

        found = await asyncio.gather(work("sheddable"), work(None), work("critical_plus"))
        assert found == ["sheddable", "critical", "critical_plus"]

    asyncio.run(main())


def test_it_travels_into_trio_tasks_and_threads(gate: Gate) -> None:
    async def main() -> None:
        found = []

        async def look() -> None:
            found.append(seen(gate))

        with use_priority("sheddable"):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(look)
            assert await trio.to_thread.run_sync(seen, gate) == "sheddable"
        assert found == ["sheddable"]

    trio.run(main)


def test_it_does_not_travel_into_threads_and_executors_as_documented(gate: Gate) -> None:
    """Docs: it reaches tasks and asyncio.to_thread, not run_in_executor or raw threads."""

    async def main() -> None:
        with use_priority("sheddable"):
            assert await asyncio.get_running_loop().run_in_executor(None, seen, gate) == "critical"

    if not getattr(sys.flags, "thread_inherit_context", 0):  # free-threaded 3.14 hands contexts on
        asyncio.run(main())
        with use_priority("sheddable"):
            assert in_thread(lambda: seen(gate)) == "critical"

    with use_priority("sheddable"):
        context = contextvars.copy_context()
    assert in_thread(lambda: context.run(seen, gate)) == "sheddable", "it can be carried there"


def test_a_block_that_ends_in_another_context_ends_quietly(gate: Gate) -> None:
    block = use_priority("sheddable")
    contextvars.copy_context().run(block.__enter__)
    assert seen(gate) == "critical"
    contextvars.copy_context().run(block.__exit__, None, None, None)
    assert seen(gate) == "critical"
    assert_at_rest(gate)


def test_a_fastapi_dependency_must_be_async_for_its_priority_to_reach_the_endpoint(gate: Gate) -> None:
    """Docs: FastAPI runs both ends of a sync dependency in copied contexts, where the priority is lost."""

    def in_threads() -> Iterator[None]:
        with use_priority("sheddable"), gate:
            yield

    async def in_the_request() -> AsyncIterator[None]:
        with use_priority("sheddable"), gate:
            yield

    app = FastAPI()

    @app.get("/sync", dependencies=[Depends(in_threads)])
    def sync() -> str:
        return seen(gate)

    @app.get("/async", dependencies=[Depends(in_the_request)])
    async def asynchronous() -> str:
        return seen(gate)

    @app.get("/mixed", dependencies=[Depends(in_the_request)])
    def mixed() -> str:
        return seen(gate)

    async def ask() -> dict[str, str]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return {path: (await client.get(path)).json() for path in ("/sync", "/async", "/mixed")}

    assert asyncio.run(ask()) == {"/sync": "critical", "/async": "sheddable", "/mixed": "sheddable"}
    assert gate.stats().admitted[Priority.SHEDDABLE] == 5
    assert_at_rest(gate)


def test_the_context_variable_is_not_read_before_use_priority_was_used() -> None:
    """It is what a block costs twice over, so those who do not use it do not pay for it."""
    assert output_of("""
        from tidegate import Gate, use_priority
        from tidegate._context import current
        gate = Gate("db", limit=1)
        current.set("sheddable")  # nobody outside of this test does that
        with gate.admit() as permit:
            print(permit.priority)
        with use_priority("critical"):
            pass
        with gate.admit() as permit:
            print(permit.priority)
    """).split() == ["critical", "sheddable"]
