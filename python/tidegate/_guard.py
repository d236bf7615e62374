"""``gate.guard``: a function whose every run holds a permit.

The wrapper is a plain function of the same kind as what it wraps, and the permit is taken when the body
starts and given back when it ends: wrapping the call instead of the execution would free the permit
before the body of a coroutine or generator has run.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import TYPE_CHECKING, Any

from tidegate._held import joined

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from tidegate._native import Gate
    from tidegate._types import PriorityLike

_Function = Any  # whatever can be called; the stub has the exact types
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false


def guard(
    gate: Gate, function: _Function | None, priority: PriorityLike | None, weight: int | None
) -> _Function:
    """The guarded function, or the decorator that makes it."""

    def decorate(function: _Function) -> _Function:
        return _guarded(gate, function, priority, 1 if weight is None else weight)

    return decorate if function is None else decorate(function)


def _guarded(gate: Gate, function: _Function, priority: PriorityLike | None, weight: int) -> _Function:
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_guarded(gate, function.__func__, priority, weight))
    if not callable(function):
        raise TypeError(f"guard needs a function, got {function!r} ({type(function).__name__})")

    import inspect  # a large module, for those who decorate

    def admit() -> Any:
        # A request that holds a permit of this gate takes no second one.
        return joined(gate) or gate.admit(priority=priority, weight=weight)

    kind = _code_owner(function)
    if inspect.isasyncgenfunction(kind):
        wrapper = _async_generator(admit, function)
    elif inspect.iscoroutinefunction(kind):
        wrapper = _coroutine(admit, function)
    elif inspect.isgeneratorfunction(kind):
        wrapper = _generator(admit, function)
        if kind.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE:
            wrapper = types.coroutine(wrapper)
    else:
        wrapper = _function(admit, function)
    return functools.update_wrapper(wrapper, function)


def _code_owner(function: _Function) -> _Function:
    """The function whose code tells the kind: behind partials, and behind an object's ``__call__``."""
    while isinstance(function, functools.partial):
        function = function.func
    import inspect

    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__


def _function(admit: Callable[..., Any], function: _Function) -> _Function:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with admit():
            return function(*args, **kwargs)

    return wrapper


def _coroutine(admit: Callable[..., Any], function: _Function) -> _Function:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with admit():
            return await function(*args, **kwargs)

    return wrapper


def _generator(admit: Callable[..., Any], function: _Function) -> _Function:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with admit():
            return (yield from function(*args, **kwargs))

    return wrapper


def _async_generator(admit: Callable[..., Any], function: _Function) -> _Function:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with admit():
            inner = function(*args, **kwargs)
            # What ``yield from`` does, which async generators do not have: whatever is sent or thrown
            # in reaches the inner generator.
            step = _first_step(inner)
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:
                    step = inner.athrow(error)
                else:
                    step = inner.asend(sent)

    return wrapper


def _first_step(inner: AsyncGenerator[Any, Any]) -> Any:
    """Begins an inner generator without showing it to the event loop.

    A loop closes the generators it has seen when it ends, all of them at once: the inner one is the outer
    one's to close, and closed from two sides it would fail and outlive the permit.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return inner.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)
