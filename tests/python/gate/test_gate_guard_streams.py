"""A guarded stream holds its permit from its first item to its end, however it ends (field fault D15)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import anyio
import pytest
import trio
from gatekit import admitted, assert_at_rest, released
from tidegate import Gate, Shed

# --- generators --------------------------------------------------------------------------------


def test_d15_a_generator_takes_its_place_at_the_first_item_and_holds_it_while_suspended(gate: Gate) -> None:
    items = gate.guard(lambda: (yield from "ab"))()
    assert gate.in_flight == 0
    assert next(items) == "a"
    assert gate.in_flight == 1
    assert gate.try_admit() is None
    assert next(items) == "b"
    assert gate.in_flight == 1
    with pytest.raises(StopIteration):
        next(items)
    assert released(gate.stats()) == {"success": 1}
    assert_at_rest(gate)


def test_d15_a_generator_that_is_shed_is_over(gate: Gate) -> None:
    items = gate.guard(lambda: (yield from "ab"))()
    with gate, pytest.raises(Shed):
        next(items)
    with pytest.raises(StopIteration):
        next(items)
    assert_at_rest(gate)


class Talk:
    """A generator that answers, and a record of what reached it."""

    def __init__(self, gate: Gate) -> None:
        self.heard: list[object] = []
        self.talk = gate.guard(self._talk)()

    def _talk(self) -> Generator[object, object, str]:
        said: object = "hello"
        while said != "bye":
            try:
                said = yield said
            except KeyError as error:
                said = error
            except GeneratorExit:
                self.heard.append("closed")
                raise
            self.heard.append(said)
        return "ended"


def test_d15_send_throw_and_the_return_value_reach_through_the_guard(gate: Gate) -> None:
    session = Talk(gate)
    assert next(session.talk) == "hello"
    assert session.talk.send("one") == "one"
    error = KeyError("two")
    assert session.talk.throw(error) is error
    assert gate.in_flight == 1
    with pytest.raises(StopIteration) as ended:
        session.talk.send("bye")
    assert ended.value.value == "ended"
    assert session.heard == ["one", error, "bye"]
    assert_at_rest(gate)


def test_d15_an_exception_thrown_in_and_not_caught_ends_it_with_its_outcome(gate: Gate) -> None:
    session = Talk(gate)
    next(session.talk)
    with pytest.raises(TimeoutError):
        session.talk.throw(TimeoutError)
    assert released(gate.stats()) == {"overload": 1}
    assert_at_rest(gate)


@pytest.mark.parametrize("how", ["close", "drop", "cycle"])
def test_d15_an_abandoned_generator_gives_its_place_back(gate: Gate, how: str) -> None:
    session = Talk(gate)
    heard = session.heard
    next(session.talk)
    if how == "close":
        session.talk.close()
    elif how == "drop":
        session.talk = None
    else:
        del session  # which its generator still refers to
        assert gate.in_flight == 1
        gc.collect()
    assert heard == ["closed"]
    assert released(gate.stats()) == {"ignore": 1}
    assert gate.stats().collected == 0, "its block has ended: that is no forgotten permit"
    assert_at_rest(gate)


def test_d15_a_generator_closed_before_its_first_item_took_nothing(gate: Gate) -> None:
    Talk(gate).talk.close()
    assert admitted(gate.stats()) == 0


# --- async generators --------------------------------------------------------------------------


class AsyncTalk:
    """As Talk, and it may answer to being closed."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.heard: list[object] = []
        self.talk = gate.guard(self._talk)()

    async def _talk(self) -> AsyncGenerator[object, object]:
        said: object = "hello"
        try:
            while said != "bye":
                try:
                    said = yield said
                except KeyError as error:
                    said = error
                self.heard.append(said)
                await anyio.sleep(0)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0)  # clean-up may wait, too
            self.heard.append(("left", self.gate.in_flight))


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return lambda main: anyio.run(main, backend=request.param)


def test_d15_an_async_generator_holds_its_place_while_suspended(gate: Gate, run: Callable[..., Any]) -> None:
    async def main() -> None:
        session = AsyncTalk(gate)
        assert gate.in_flight == 0
        assert await anext(session.talk) == "hello"
        await anyio.sleep(0)
        assert gate.in_flight == 1
        assert gate.try_admit() is None
        with pytest.raises(StopAsyncIteration):
            await session.talk.asend("bye")
        assert session.heard == ["bye", ("left", 1)]

    run(main)
    assert released(gate.stats()) == {"success": 1}
    assert_at_rest(gate)


def test_d15_asend_and_athrow_reach_through_the_guard(gate: Gate, run: Callable[..., Any]) -> None:
    async def main() -> None:
        session = AsyncTalk(gate)
        assert await session.talk.asend(None) == "hello"
        assert await session.talk.asend("one") == "one"
        error = KeyError("two")
        assert await session.talk.athrow(error) is error
        assert gate.in_flight == 1
        with pytest.raises(TimeoutError):
            await session.talk.athrow(TimeoutError())
        assert session.heard == ["one", error, ("left", 1)]

    run(main)
    assert released(gate.stats()) == {"overload": 1}
    assert_at_rest(gate)


def test_d15_the_place_is_free_when_aclose_has_closed_the_body(gate: Gate, run: Callable[..., Any]) -> None:
    async def main() -> None:
        session = AsyncTalk(gate)
        await anext(session.talk)
        await session.talk.aclose()
        assert session.heard == [("left", 1)]
        assert gate.in_flight == 0

    run(main)
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


def test_d15_an_inner_generator_that_will_not_close_is_an_error_as_without_guard(gate: Gate) -> None:
    @gate.guard
    async def stubborn() -> AsyncGenerator[int, None]:
        try:
            yield 1
        except GeneratorExit:
            yield 2

    async def main() -> None:
        items = stubborn()
        await anext(items)
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            await items.aclose()
        assert gate.in_flight == 0

    asyncio.run(main())
    assert_at_rest(gate)


def test_d15_an_abandoned_async_generator_gives_its_place_back_on_asyncio(gate: Gate) -> None:
    async def main() -> list[object]:
        session = AsyncTalk(gate)
        await anext(session.talk)
        session.talk = None  # the loop closes it
        for _ in range(10):
            await asyncio.sleep(0)
        assert gate.in_flight == 0
        return session.heard

    assert asyncio.run(main()) == [("left", 1)]
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


def test_d15_those_that_are_left_when_the_loop_ends_give_their_places_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The loop closes all it knows at once, in any order: the generators inside must not be among them."""
    gates = [Gate("db", limit=1) for _ in range(20)]
    sessions = [AsyncTalk(gate) for gate in gates]

    async def main() -> None:
        for session in sessions:
            await anext(session.talk)

    asyncio.run(main())
    assert caplog.records == []
    for session in sessions:
        assert session.heard == [("left", 1)], "it kept its place until its clean-up was done"
        assert_at_rest(session.gate)


def test_d15_an_abandoned_async_generator_gives_its_place_back_on_trio(gate: Gate) -> None:
    @gate.guard
    async def items() -> AsyncGenerator[int, None]:
        yield 1
        yield 2

    async def main() -> None:
        async for _ in items():
            break
        gc.collect()
        await trio.sleep(0)
        await trio.sleep(0)

    with pytest.warns(ResourceWarning, match="was garbage collected before it had been exhausted"):
        trio.run(main)
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


def test_d15_cancelling_the_consumer_cancels_the_producer(gate: Gate, run: Callable[..., Any]) -> None:
    heard = []

    @gate.guard
    async def items() -> AsyncGenerator[int, None]:
        try:
            yield 1
            await anyio.sleep(60)
        except BaseException as error:
            heard.append(type(error))
            raise

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async for _ in items():
                scope.cancel()
        assert gate.in_flight == 0

    run(main)
    assert [error.__name__ for error in heard] in (["CancelledError"], ["Cancelled"])
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


def test_d15_an_async_generator_that_is_shed_is_over(gate: Gate) -> None:
    async def main() -> None:
        session = AsyncTalk(gate)
        with gate, pytest.raises(Shed):
            await anext(session.talk)
        with pytest.raises(StopAsyncIteration):
            await anext(session.talk)
        assert session.heard == [], "the body did not run"

    asyncio.run(main())
    assert_at_rest(gate)


def test_d15_anext_awaited_twice_at_once_is_an_error_as_without_guard(gate: Gate) -> None:
    @gate.guard
    async def items() -> AsyncGenerator[int, None]:
        await asyncio.sleep(0)
        yield 1

    async def main() -> None:
        stream = items()
        results = await asyncio.gather(anext(stream), anext(stream), return_exceptions=True)
        assert [type(result) for result in results] == [int, RuntimeError]
        assert gate.in_flight == 1
        await stream.aclose()

    asyncio.run(main())
    assert_at_rest(gate)
