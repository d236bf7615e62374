"""Releasing never waits, so a cancelled block is left on the next line (field fault D14)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import trio
from gatekit import admitted, assert_at_rest, released
from tidegate import Gate, Shed

Run = Callable[[Callable[[], Any]], Any]


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Run:
    return lambda main: anyio.run(main, backend=request.param)


class Abort(BaseException):
    pass


BLOCKS = {
    "gate": lambda gate: gate,
    "admit": lambda gate: gate.admit(),
}
each_block = pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)


@each_block
def test_d14_move_on_after(gate: Gate, run: Run, block: Callable[[Gate], Any]) -> None:
    async def main() -> None:
        with anyio.move_on_after(0) as scope:
            async with block(gate):
                assert gate.in_flight == 1
                await anyio.sleep_forever()
            pytest.fail("the cancellation was lost")
        assert gate.in_flight == 0
        assert scope.cancelled_caught

    run(main)
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


@each_block
def test_d14_leaving_within_a_scope_that_is_cancelled_already(
    gate: Gate, run: Run, block: Callable[[Gate], Any]
) -> None:
    """Each await in here is a cancellation; the way out holds none."""

    async def main() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with block(gate):
                assert gate.in_flight == 1
            assert gate.in_flight == 0, "on the line after the block, still inside the scope"
            async with block(gate):
                try:
                    await anyio.sleep(0)
                finally:
                    assert gate.in_flight == 1
            pytest.fail("the cancellation was lost")
        assert gate.in_flight == 0

    run(main)
    assert released(gate.stats()) == {"success": 1, "ignore": 1}
    assert_at_rest(gate)


@each_block
def test_d14_nested_scopes_and_shields(run: Run, block: Callable[[Gate], Any]) -> None:
    gate = Gate("db", limit=2)

    async def main() -> None:
        with anyio.CancelScope() as outer:
            async with block(gate):
                with anyio.CancelScope(shield=True) as inner:
                    async with block(gate):
                        outer.cancel()
                        await anyio.sleep(0)  # shielded
                        assert gate.in_flight == 2
                        inner.cancel()
                        await anyio.sleep_forever()
                assert gate.in_flight == 1
                await anyio.sleep_forever()
        assert gate.in_flight == 0

    run(main)
    assert_at_rest(gate)


@each_block
def test_d14_a_failing_task_group_cancels_its_siblings(run: Run, block: Callable[[Gate], Any]) -> None:
    gate = Gate("db", limit=3)

    async def main() -> None:
        async def hold() -> None:
            async with block(gate):
                await anyio.sleep_forever()

        async def fail() -> None:
            while gate.in_flight < 2:
                await anyio.sleep(0)
            async with block(gate):
                raise KeyError

        with pytest.raises(ExceptionGroup) as raised:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(hold)
                tasks.start_soon(hold)
                tasks.start_soon(fail)
        assert raised.group_contains(KeyError)
        assert gate.in_flight == 0

    run(main)
    assert released(gate.stats()) == {"ignore": 2, "success": 1}
    assert_at_rest(gate)


def test_d14_asyncio_task_group(gate: Gate) -> None:
    async def main() -> None:
        async def hold() -> None:
            async with gate:
                await asyncio.sleep(60)

        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(hold())
                await asyncio.sleep(0)
                assert gate.in_flight == 1
                raise KeyError
        assert gate.in_flight == 0

    asyncio.run(main())
    assert_at_rest(gate)


def test_d14_a_task_group_inside_the_gate(gate: Gate, run: Run) -> None:
    async def fail() -> None:
        raise TimeoutError

    async def main() -> None:
        with pytest.raises(ExceptionGroup):
            async with gate, anyio.create_task_group() as tasks:
                tasks.start_soon(fail)
        assert gate.in_flight == 0

    run(main)
    assert released(gate.stats()) == {"overload": 1}, "a group's leaves decide"
    assert_at_rest(gate)


@each_block
def test_d14_cancelled_while_leaving(gate: Gate, block: Callable[[Gate], Any]) -> None:
    """The cancellation is requested in the body's last step and meets no await of ours on the way out."""

    async def main() -> None:
        left = []

        async def work() -> None:
            async with block(gate):
                asyncio.current_task().cancel()
            left.append(gate.in_flight)
            await asyncio.sleep(0)
            pytest.fail("the cancellation was swallowed")

        task = asyncio.create_task(work())
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert left == [0]

    asyncio.run(main())
    assert released(gate.stats()) == {"success": 1}
    assert_at_rest(gate)


@each_block
@pytest.mark.parametrize("when", ["before it starts", "in the body", "after it left"])
def test_d14_a_cancelled_task_is_cancelled(gate: Gate, block: Callable[[Gate], Any], when: str) -> None:
    async def main() -> None:
        async def work() -> None:
            async with block(gate):
                await asyncio.sleep(0)
            await asyncio.sleep(60)

        task = asyncio.create_task(work())
        for _ in range({"before it starts": 0, "in the body": 1, "after it left": 2}[when]):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert gate.in_flight == 0

    asyncio.run(main())
    wanted = {"before it starts": {}, "in the body": {"ignore": 1}, "after it left": {"success": 1}}
    assert released(gate.stats()) == wanted[when]
    assert_at_rest(gate)


@each_block
@pytest.mark.parametrize("error", [Abort, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_d14_exceptions_that_are_no_exception(gate: Gate, error: Any, block: Callable[[Gate], Any]) -> None:
    with pytest.raises(error), block(gate):
        raise error
    assert gate.in_flight == 0

    async def work() -> None:
        async with block(gate):
            await asyncio.sleep(0)
            raise error

    with pytest.raises(error):
        asyncio.run(work())
    assert released(gate.stats()) == {"ignore": 2}
    assert_at_rest(gate)


def test_d14_a_trio_cancellation_in_a_synchronous_block(gate: Gate) -> None:
    async def main() -> None:
        with trio.move_on_after(0), gate:
            await trio.sleep_forever()
        assert gate.in_flight == 0

    trio.run(main)
    assert released(gate.stats()) == {"ignore": 1}


def test_d14_a_coroutine_that_is_dropped_in_the_body(gate: Gate) -> None:
    async def work() -> None:
        async with gate:
            await Pause()

    running = work()
    running.send(None)
    assert gate.in_flight == 1
    del running
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


class Pause:
    def __await__(self) -> Any:
        yield


def test_d14_work_that_is_cancelled_while_shed_stays_shed(gate: Gate) -> None:
    async def main() -> None:
        async def refused() -> None:
            asyncio.current_task().cancel()
            async with gate:
                pytest.fail("the body ran")

        task = asyncio.create_task(refused())
        assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], Shed)

    with gate:
        asyncio.run(main())
    assert admitted(gate.stats()) == 1
    assert_at_rest(gate)
