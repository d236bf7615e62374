"""``admit`` holds nothing until it is entered, once; ``try_admit`` answers with a permit or None."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from gatekit import admitted, assert_at_rest, shed, together
from tidegate import Admission, Gate, Permit, Priority, Shed


def test_an_admission_holds_nothing_until_it_is_entered(gate: Gate) -> None:
    admission = gate.admit()
    assert isinstance(admission, Admission)
    assert (gate.in_flight, admitted(gate.stats())) == (0, 0)
    del admission
    assert_at_rest(gate)


def test_entering_yields_a_permit_and_leaving_releases_it(gate: Gate) -> None:
    with gate.admit() as permit:
        assert isinstance(permit, Permit)
        assert (gate.in_flight, permit.released) == (1, False)
    assert (gate.in_flight, permit.released) == (0, True)
    assert_at_rest(gate)


def test_a_permit_released_in_its_block_is_not_released_again(gate: Gate) -> None:
    with gate.admit() as permit:
        permit.release()
        with gate:  # somebody else has the place now
            pass
        other = gate.try_admit()
    assert gate.in_flight == 1, "the block's end took another's place"
    other.release()
    assert_at_rest(gate)


@pytest.mark.parametrize("first_is_shed", [False, True])
def test_an_admission_is_entered_once(gate: Gate, first_is_shed: bool) -> None:
    admission = gate.admit()
    with contextlib.ExitStack() as stack:
        if first_is_shed:
            with gate, pytest.raises(Shed):
                stack.enter_context(admission)
        else:
            stack.enter_context(admission)
        before = gate.stats()
        with pytest.raises(RuntimeError, match=r"already entered.*admit\(\) anew"):
            admission.__enter__()
        with pytest.raises(RuntimeError, match="already entered"):
            asyncio.run(awaited(admission))
        assert gate.in_flight == before.in_flight
    assert_at_rest(gate)


async def awaited(admission: Admission) -> Permit:
    return await admission


def test_of_threads_that_enter_one_admission_only_one_gets_in() -> None:
    gate = Gate("db", limit=10)
    for _ in range(50):
        admission = gate.admit()

        def enter(admission: Admission = admission) -> Permit | None:
            try:
                return admission.__enter__()
            except RuntimeError:
                return None

        permits = [permit for permit in together(enter, enter, enter) if permit is not None]
        assert len(permits) == 1
        assert gate.in_flight == 1
        permits[0].release()
    assert_at_rest(gate)


def test_leaving_an_admission_that_was_never_entered_does_nothing(gate: Gate) -> None:
    with gate:
        gate.admit().__exit__(None, None, None)
        assert gate.in_flight == 1
    assert_at_rest(gate)


def test_priority_and_weight_are_those_asked_for() -> None:
    gate = Gate("db", limit=10)
    with gate.admit(priority="sheddable", weight=3) as permit:
        assert (permit.priority, permit.weight, gate.in_flight) == (Priority.SHEDDABLE, 3, 3)
        with pytest.raises(Shed), gate.admit(weight=8):
            pass
        with gate.admit(weight=7):
            assert gate.in_flight == 10
    assert_at_rest(gate)


# --- async -------------------------------------------------------------------------------------


def test_async_with_admit(gate: Gate) -> None:
    async def main() -> None:
        async with gate.admit() as permit:
            assert gate.in_flight == 1
            with pytest.raises(Shed):
                async with gate.admit():
                    pytest.fail("the body ran")
        assert permit.released

    asyncio.run(main())
    assert_at_rest(gate)


def test_awaiting_an_admission_hands_the_permit_over(gate: Gate) -> None:
    async def main() -> Permit:
        with pytest.raises(Shed), gate:
            await gate.admit()
        return await gate.admit()

    permit = asyncio.run(main())
    assert (gate.in_flight, permit.released) == (1, False)
    permit.release()
    assert_at_rest(gate)


def test_an_admission_takes_its_place_when_awaited_not_when_called(gate: Gate) -> None:
    for awaitable in (gate.admit().__aenter__(), gate.admit().__await__()):
        assert gate.in_flight == 0
        with pytest.raises(StopIteration) as awaited:
            next(iter(awaitable))
        assert gate.in_flight == 1
        with pytest.raises(RuntimeError, match="already entered"):
            next(iter(awaitable))
        awaited.value.value.release()
    assert_at_rest(gate)


def test_asyncio_wait_for_an_admission_that_is_cancelled_before_it_begins(gate: Gate) -> None:
    async def main() -> None:
        waiting = asyncio.ensure_future(asyncio.wait_for(gate.admit(), 1))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled()

    asyncio.run(main())
    assert admitted(gate.stats()) == 0
    assert_at_rest(gate)


# --- try_admit ---------------------------------------------------------------------------------


def test_try_admit_returns_a_permit_or_none(gate: Gate) -> None:
    permit = gate.try_admit()
    assert isinstance(permit, Permit)
    assert gate.try_admit() is None
    permit.release()
    assert shed(gate.stats()) == 1
    assert_at_rest(gate)


def test_a_limit_of_zero_admits_nobody_until_it_is_raised() -> None:
    gate = Gate("db", limit=0)
    assert gate.try_admit(priority=Priority.CRITICAL_PLUS) is None
    with pytest.raises(Shed), gate:
        pass
    gate.set_limit(1)
    with gate:
        pass
    assert_at_rest(gate)


def test_the_arguments_are_keywords(gate: Gate) -> None:
    for call in (gate.admit, gate.try_admit, gate.retry_after):
        with pytest.raises(TypeError):
            call("sheddable")
