"""``with gate`` and ``async with gate``: in, out, nothing kept."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from gatekit import admitted, assert_at_rest, shed
from tidegate import Gate, Shed


def test_a_block_is_one_admission(gate: Gate) -> None:
    with gate as nothing:
        assert nothing is None
        assert gate.in_flight == 1
    assert gate.in_flight == 0
    assert admitted(gate.stats()) == 1
    assert_at_rest(gate)


def test_a_full_gate_raises_shed_before_the_body_runs(gate: Gate) -> None:
    with gate:
        with pytest.raises(Shed) as refused, gate:
            pytest.fail("the body ran")
        assert gate.in_flight == 1, "a refusal takes nothing, and its block has no exit"
    assert (refused.value.in_flight, refused.value.limit) == (1, 1)
    assert shed(gate.stats(), "limit") == 1
    assert_at_rest(gate)


def test_the_block_neither_swallows_nor_replaces_an_exception(gate: Gate) -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as raised, gate:
        raise error
    assert raised.value is error
    assert error.__context__ is None
    assert_at_rest(gate)


def test_a_gate_is_entered_as_often_as_it_has_room() -> None:
    gate = Gate("db", limit=3)
    with gate, gate, gate:
        assert gate.in_flight == 3
        with pytest.raises(Shed), gate:
            pass
    assert_at_rest(gate)


def test_leaving_a_block_by_return_break_and_continue(gate: Gate) -> None:
    def returning() -> str:
        with gate:
            return "out"

    assert returning() == "out"
    for step in range(4):
        with gate:
            if step == 1:
                continue
            if step == 2:
                break
    assert admitted(gate.stats()) == 4
    assert_at_rest(gate)


def test_an_exit_too_many_is_counted_and_does_no_harm(gate: Gate) -> None:
    gate.__exit__(None, None, None)
    stats = gate.stats()
    assert (stats.in_flight, stats.unmatched_exits) == (0, 1)
    with gate, pytest.raises(Shed), gate:
        pass


def test_exit_stacks(gate: Gate) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(gate)
        assert gate.in_flight == 1
    assert_at_rest(gate)

    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(gate)
            assert gate.in_flight == 1
            stack.pop_all().push_async_exit(gate)  # as a decorator's own clean-up would
        gate.__exit__(None, None, None)

    asyncio.run(main())
    assert_at_rest(gate)


def test_a_gate_is_a_context_manager_to_those_who_ask() -> None:
    gate = Gate("db", limit=1)
    assert isinstance(gate, contextlib.AbstractContextManager)
    assert isinstance(gate, contextlib.AbstractAsyncContextManager)


def test_entering_through_the_class_and_by_bound_methods(gate: Gate) -> None:
    Gate.__enter__(gate)
    assert gate.in_flight == 1
    Gate.__exit__(gate, None, None, None)
    enter, leave = gate.__enter__, gate.__exit__
    enter()
    leave(None, None, None)
    assert_at_rest(gate)
    with pytest.raises(TypeError):
        Gate.__enter__(object())


# --- async -------------------------------------------------------------------------------------


def test_async_with_never_suspends(gate: Gate) -> None:
    async def main() -> str:
        async with gate as nothing:
            assert nothing is None
            assert gate.in_flight == 1
        return "done"

    # Driven by hand: a coroutine that never yields to its loop ends at the first step.
    with pytest.raises(StopIteration) as ended:
        main().send(None)
    assert ended.value.value == "done"
    assert_at_rest(gate)


def test_async_with_sheds_like_with(gate: Gate) -> None:
    async def main() -> None:
        async with gate:
            with pytest.raises(Shed):
                async with gate:
                    pytest.fail("the body ran")

    asyncio.run(main())
    assert_at_rest(gate)


def test_aenter_takes_its_place_when_awaited_not_when_called(gate: Gate) -> None:
    entering = gate.__aenter__()
    assert gate.in_flight == 0
    del entering
    assert_at_rest(gate)

    async def cancelled_before_it_began() -> None:
        async def enter() -> None:
            await entering

        entering = gate.__aenter__()
        task = asyncio.create_task(enter())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled_before_it_began())
    assert_at_rest(gate)
