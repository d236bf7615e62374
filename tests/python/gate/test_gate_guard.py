"""``gate.guard``: each run of a body holds a permit, whatever kind of callable it is (field fault D15)."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from gatekit import admitted, assert_at_rest, released
from tidegate import ConfigError, Gate, Priority, Shed

GATE = Gate("db", limit=1)  # for what is decorated at import


@pytest.fixture(autouse=True)
def at_rest() -> Iterator[None]:
    yield
    assert_at_rest(GATE)


def inside() -> int:
    """Runs as a guarded body: one is inside, and a second does not fit."""
    assert GATE.try_admit() is None
    return GATE.in_flight


# --- every kind of callable --------------------------------------------------------------------


@GATE.guard
def function() -> int:
    return inside()


@GATE.guard
async def coroutine() -> int:
    await asyncio.sleep(0)
    return inside()


@GATE.guard
def generator() -> Iterator[int]:
    yield inside()
    yield inside()


@GATE.guard
async def async_generator() -> AsyncIterator[int]:
    await asyncio.sleep(0)
    yield inside()
    await asyncio.sleep(0)
    yield inside()


def plain(times: int, *, plus: int = 0) -> int:
    return inside() * times + plus


async def plain_coroutine(times: int) -> int:
    await asyncio.sleep(0)
    return inside() * times


def plain_generator(times: int) -> Iterator[int]:
    for _ in range(times):
        yield inside()


class Service:
    @GATE.guard
    def method(self) -> int:
        return inside()

    @GATE.guard
    async def coroutine_method(self) -> int:
        await asyncio.sleep(0)
        return inside()

    @GATE.guard
    def generator_method(self) -> Iterator[int]:
        yield inside()

    @GATE.guard
    @staticmethod
    def guard_over_static() -> int:
        return inside()

    @staticmethod
    @GATE.guard
    def static_over_guard() -> int:
        return inside()

    @GATE.guard
    @classmethod
    def guard_over_class(cls) -> int:
        assert cls is Service
        return inside()

    @classmethod
    @GATE.guard
    def class_over_guard(cls) -> int:
        assert cls is Service
        return inside()

    @GATE.guard
    @classmethod
    async def coroutine_of_the_class(cls) -> int:
        await asyncio.sleep(0)
        return inside()

    def unguarded(self) -> int:
        return inside()

    def __call__(self) -> int:
        return inside()


class AsyncService:
    async def __call__(self) -> int:
        await asyncio.sleep(0)
        return inside()


class StreamService:
    async def __call__(self) -> AsyncIterator[int]:
        yield inside()


CALLABLES = {
    "function": function,
    "coroutine": coroutine,
    "generator": generator,
    "async generator": async_generator,
    "lambda": GATE.guard(lambda: inside()),
    "partial": GATE.guard(functools.partial(plain, 1, plus=0)),
    "partial of a partial": GATE.guard(functools.partial(functools.partial(plain, plus=0), 1)),
    "partial of a coroutine": GATE.guard(functools.partial(plain_coroutine, 1)),
    "partial of a generator": GATE.guard(functools.partial(plain_generator, 1)),
    "partial of a guarded coroutine": functools.partial(coroutine),
    "object": GATE.guard(Service()),
    "object with an async __call__": GATE.guard(AsyncService()),
    "object with a streaming __call__": GATE.guard(StreamService()),
    "partial of an object with an async __call__": GATE.guard(functools.partial(AsyncService())),
    "method": Service().method,
    "coroutine method": Service().coroutine_method,
    "generator method": Service().generator_method,
    "bound method": GATE.guard(Service().unguarded),
    "guard over staticmethod": Service.guard_over_static,
    "staticmethod over guard": Service.static_over_guard,
    "static, through the instance": Service().guard_over_static,
    "guard over classmethod": Service.guard_over_class,
    "classmethod over guard": Service.class_over_guard,
    "class, through the instance": Service().guard_over_class,
    "coroutine of the class": Service.coroutine_of_the_class,
    "cached": functools.cache(GATE.guard(functools.partial(plain, 1))),
}


async def run(call: Callable[[], Any]) -> list[int]:
    """Call it and take all it has to give."""
    result = call()
    if inspect.isasyncgen(result):
        return [item async for item in result]
    if inspect.isgenerator(result):
        return list(result)
    return [await result if inspect.isawaitable(result) else result]


@pytest.mark.parametrize("call", CALLABLES.values(), ids=CALLABLES)
def test_d15_the_permit_is_held_while_the_body_runs(call: Callable[[], Any]) -> None:
    before = admitted(GATE.stats())
    found = asyncio.run(run(call))
    assert found
    assert set(found) == {1}
    assert admitted(GATE.stats()) > before


@pytest.mark.parametrize("call", CALLABLES.values(), ids=CALLABLES)
def test_d15_a_second_run_is_shed(call: Callable[[], Any]) -> None:
    functools.cache(call).cache_clear()
    getattr(call, "cache_clear", lambda: None)()
    with GATE, pytest.raises(Shed):
        asyncio.run(run(call))


ORIGINALS = [
    plain,
    plain_coroutine,
    plain_generator,
    async_generator.__wrapped__,
    Service().unguarded,
    functools.partial(plain_coroutine, 1),
    functools.partial(plain_generator, times=1),
    Service.__dict__["coroutine_method"].__wrapped__,
]
KINDS = [inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction]


@pytest.mark.parametrize("original", ORIGINALS, ids=repr)
def test_d15_inspect_and_asyncio_agree_on_the_kind(original: Callable[..., Any]) -> None:
    guarded = GATE.guard(original)
    for kind in [*KINDS, asyncio.iscoroutinefunction]:
        assert kind(guarded) == kind(original), kind
    assert inspect.isfunction(guarded), "frameworks look into plain functions, not into callable objects"
    assert inspect.signature(guarded) == inspect.signature(original)
    assert guarded.__wrapped__ is original


@pytest.mark.parametrize("instance", [AsyncService(), StreamService()])
def test_d15_the_kind_of_an_object_is_that_of_its_call(instance: Callable[..., Any]) -> None:
    for kind in KINDS:
        assert kind(GATE.guard(instance)) == kind(instance.__call__)


def test_the_decorated_keeps_its_name_signature_and_attributes() -> None:
    def report(year: int, /, month: int = 1, *parts: str, fast: bool, **more: Any) -> str:
        """Monthly."""

    report.marked = True  # type: ignore[attr-defined]
    guarded = GATE.guard(priority="sheddable")(report)
    assert (guarded.__name__, guarded.__doc__, guarded.__module__) == ("report", "Monthly.", __name__)
    assert guarded.__qualname__ == report.__qualname__
    assert guarded.__annotations__ == report.__annotations__
    assert guarded.marked
    assert str(inspect.signature(guarded)) == str(inspect.signature(report))


def test_arguments_and_results_pass_untouched() -> None:
    @GATE.guard
    def echo(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    assert echo(1, self=2, function=3, gate=4) == ((1,), {"self": 2, "function": 3, "gate": 4})


def test_static_and_class_methods_stay_what_they_are() -> None:
    attributes = vars(Service)
    for name in ("guard_over_static", "static_over_guard"):
        assert isinstance(attributes[name], staticmethod)
    for name in ("guard_over_class", "class_over_guard", "coroutine_of_the_class"):
        assert isinstance(attributes[name], classmethod)
    assert inspect.iscoroutinefunction(Service.coroutine_of_the_class)


def test_a_guarded_class_guards_its_construction() -> None:
    class Report:
        def __init__(self, title: str) -> None:
            self.title = title
            assert inside() == 1

    assert GATE.guard(Report)("monthly").title == "monthly"


# --- when it admits ----------------------------------------------------------------------------


def test_d15_a_coroutine_never_awaited_takes_nothing() -> None:
    before = admitted(GATE.stats())
    never = coroutine()
    assert GATE.in_flight == 0
    with pytest.warns(RuntimeWarning, match="never awaited"):
        del never
    assert admitted(GATE.stats()) == before


def test_calls_are_shed_when_awaited_not_when_made() -> None:
    with GATE:
        later = coroutine()
    assert asyncio.run(later) == 1


def test_two_awaits_in_one_loop_meet_at_the_gate() -> None:
    async def main() -> list[Any]:
        return await asyncio.gather(coroutine(), coroutine(), return_exceptions=True)

    first, second = asyncio.run(main())
    assert first == 1
    assert isinstance(second, Shed)


def test_recursion_takes_a_place_each_time_as_documented() -> None:
    """Docs: nested use of one gate takes two places, and the inner one can be shed."""

    @GATE.guard
    def countdown(n: int) -> None:
        if n:
            countdown(n - 1)

    countdown(0)
    with pytest.raises(Shed):
        countdown(1)


def test_a_plain_function_that_returns_a_coroutine_is_a_plain_function_as_documented() -> None:
    """Docs: guard looks at the function's kind. One that only returns an awaitable holds no permit for it."""

    @GATE.guard
    def lazily() -> Any:
        return plain_outside()

    async def plain_outside() -> int:
        return GATE.in_flight

    assert asyncio.run(lazily()) == 0


def test_priority_and_weight() -> None:
    gate = Gate("db", limit=10)

    @gate.guard(priority="sheddable", weight=3)
    def work() -> int:
        return gate.in_flight

    assert work() == 3
    assert gate.stats().admitted[Priority.SHEDDABLE] == 1
    assert gate.guard(lambda: gate.in_flight, weight=2)() == 2
    assert_at_rest(gate)


def test_exceptions_tell_the_outcome() -> None:
    gate = Gate("db", limit=1)

    @gate.guard
    async def late() -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(1)

    with pytest.raises(TimeoutError):
        asyncio.run(late())
    assert released(gate.stats()) == {"overload": 1}


@pytest.mark.parametrize("bad", [3, "name", object(), property(inside), functools.partialmethod(plain)])
def test_what_cannot_be_called_is_refused(bad: object) -> None:
    with pytest.raises(TypeError, match="guard needs a function"):
        GATE.guard(bad)
    with pytest.raises(TypeError, match="guard needs a function"):
        GATE.guard()(bad)


def test_wrong_arguments_are_told_where_they_are_written() -> None:
    for wrong, error in [
        ({"priority": "urgent"}, ConfigError),
        ({"priority": 1}, TypeError),
        ({"weight": 0}, ConfigError),
        ({"weight": 1.0}, TypeError),
        ({"wieght": 1}, TypeError),
    ]:
        with pytest.raises(error):
            GATE.guard(**wrong)
        with pytest.raises(error):
            GATE.guard(plain, **wrong)
    with pytest.raises(TypeError):
        GATE.guard(function=plain)
