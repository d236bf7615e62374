"""What the end of a block says about the resource."""

from __future__ import annotations

import asyncio
import concurrent.futures
from types import MappingProxyType

import anyio
import pytest
import trio
from gatekit import assert_at_rest, released
from tidegate import ConfigError, Gate, Outcome, Shed


class BusyError(Exception):
    """The application's own."""


class VeryBusyError(BusyError):
    pass


class LateError(TimeoutError):
    pass


class Abort(BaseException):
    pass


A_SHED = Shed("inner", "limit", "critical", 1, 1)

TABLE = [
    (None, "success"),
    (ValueError(), "success"),
    (Exception(), "success"),
    (OSError(), "success"),
    (BusyError(), "success"),
    (TimeoutError(), "overload"),
    (LateError(), "overload"),
    (asyncio.CancelledError(), "ignore"),
    (concurrent.futures.CancelledError(), "ignore"),
    (GeneratorExit(), "ignore"),
    (KeyboardInterrupt(), "ignore"),
    (SystemExit(1), "ignore"),
    (Abort(), "ignore"),
    (A_SHED, "ignore"),
    # of groups, the leaves decide
    (ExceptionGroup("", [ValueError(), LateError()]), "overload"),
    (ExceptionGroup("", [A_SHED, ExceptionGroup("", [TimeoutError()])]), "overload"),
    (ExceptionGroup("", [ValueError(), A_SHED]), "success"),
    (ExceptionGroup("", [A_SHED, A_SHED]), "ignore"),
    (BaseExceptionGroup("", [asyncio.CancelledError(), KeyboardInterrupt()]), "ignore"),
    (BaseExceptionGroup("", [asyncio.CancelledError(), ValueError()]), "success"),
    (BaseExceptionGroup("", [asyncio.CancelledError(), TimeoutError()]), "overload"),
]


def ways_out(gate: Gate, error: BaseException | None) -> None:
    """Leave by each kind of block with this exception, or without any."""

    def end() -> None:
        if error is not None:
            raise error

    def bare() -> None:
        with gate:
            end()

    def admission() -> None:
        with gate.admit():
            end()

    def permit() -> None:
        with gate.try_admit():
            end()

    for block in (bare, admission, permit, gate.guard(end)):
        try:
            block()
        except BaseException as raised:
            assert raised is error


async def async_ways_out(gate: Gate, error: BaseException | None) -> None:
    for block in (gate, gate.admit()):
        try:
            async with block:
                if error is not None:
                    raise error
        except BaseException as raised:
            assert raised is error


@pytest.mark.parametrize(("error", "outcome"), TABLE, ids=lambda value: repr(value)[:60])
def test_the_table(error: BaseException | None, outcome: str) -> None:
    gate = Gate("db", limit=1)
    ways_out(gate, error)
    assert released(gate.stats()) == {outcome: 4}
    with pytest.raises(StopIteration):
        async_ways_out(gate, error).send(None)
    assert released(gate.stats()) == {outcome: 6}
    assert_at_rest(gate)


def test_real_cancellations_and_timeouts() -> None:
    gate = Gate("db", limit=1)

    async def on_asyncio() -> None:
        try:
            async with asyncio.timeout(0):
                async with gate:
                    await asyncio.sleep(1)
        except TimeoutError:
            pass  # inside the block it was a cancellation

    async def on_trio() -> None:
        with trio.move_on_after(0):
            async with gate:
                await trio.sleep(1)

    asyncio.run(on_asyncio())
    trio.run(on_trio)
    anyio.run(on_trio, backend="trio")
    assert released(gate.stats()) == {"ignore": 3}

    async def the_timeout_inside_the_block() -> None:
        with pytest.raises(TimeoutError):
            async with gate:
                async with asyncio.timeout(0):
                    await asyncio.sleep(1)

    asyncio.run(the_timeout_inside_the_block())
    assert released(gate.stats()) == {"ignore": 3, "overload": 1}


def test_the_shed_of_an_inner_gate_is_ignored_by_the_outer_one() -> None:
    outer, inner = Gate("edge", limit=1), Gate("db", limit=0)
    with pytest.raises(Shed), outer, inner:
        pytest.fail("the body ran")
    assert released(outer.stats()) == {"ignore": 1}
    assert_at_rest(outer)


# --- Gate(outcomes=...) ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (BusyError(), "overload"),
        (VeryBusyError(), "ignore"),
        (type("BusierError", (VeryBusyError,), {})(), "ignore"),
        (LateError(), "success"),
        (TimeoutError(), "overload"),
        (KeyError(), "success"),
        (LookupError(), "ignore"),
        (IndexError(), "ignore"),
        (ExceptionGroup("", [KeyError(), BusyError()]), "overload"),
        (asyncio.CancelledError(), "overload"),
        (A_SHED, "success"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_the_nearest_class_of_the_mro_decides(error: BaseException, outcome: str) -> None:
    given = {
        LookupError: Outcome.IGNORE,
        KeyError: "success",
        BusyError: "overload",
        VeryBusyError: "ignore",
        LateError: "success",
        asyncio.CancelledError: "overload",
        Shed: "success",
    }
    for mapping in (given, MappingProxyType(given)):
        gate = Gate("db", limit=1, outcomes=mapping)
        ways_out(gate, error)
        assert released(gate.stats()) == {outcome: 4}


def test_among_unrelated_bases_the_order_of_the_mro_decides() -> None:
    class BothError(BusyError, LookupError):
        pass

    gate = Gate("db", limit=1, outcomes={LookupError: "ignore", BusyError: "overload"})
    ways_out(gate, BothError())
    assert released(gate.stats()) == {"overload": 4}


def test_a_group_may_have_a_meaning_of_its_own() -> None:
    gate = Gate("db", limit=1, outcomes={ExceptionGroup: "ignore"})
    ways_out(gate, ExceptionGroup("", [TimeoutError()]))
    assert released(gate.stats()) == {"ignore": 4}


def test_an_outcome_said_before_the_end_of_the_block_stands(gate: Gate) -> None:
    with pytest.raises(ValueError), gate.admit() as permit:
        permit.release("overload")
        raise ValueError
    assert released(gate.stats()) == {"overload": 1}


def test_classes_that_lie_about_themselves_do_not_keep_a_permit(gate: Gate) -> None:
    class Liar(ExceptionGroup):
        @property
        def exceptions(self) -> object:
            raise RuntimeError("not telling")

    ways_out(gate, Liar("", [ValueError()]))
    assert gate.in_flight == 0


@pytest.mark.parametrize(
    ("mapping", "error"),
    [
        ({ValueError: "fine"}, ConfigError),
        ({ValueError: None}, TypeError),
        ({ValueError: 1}, TypeError),
        ({int: "ignore"}, TypeError),
        ({"ValueError": "ignore"}, TypeError),
        ({ValueError(): "ignore"}, TypeError),
        ({(ValueError, KeyError): "ignore"}, TypeError),
        ([(ValueError, "ignore")], TypeError),
        ("ignore", TypeError),
    ],
    ids=repr,
)
def test_a_wrong_mapping_is_refused(mapping: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        Gate("db", limit=1, outcomes=mapping)
