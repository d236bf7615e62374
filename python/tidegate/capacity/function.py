"""A Python function as a target: `module:function`, sync or async.

It is called without arguments, or with one if it takes one: a dictionary with `n`, the number of the request,
and the columns of the data file. Whatever it returns is a good answer, and whatever it raises a failure. A
sync function runs in a thread of its own, which nobody can stop: one that is given up on stays in flight
until it returns.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tidegate.capacity.here import Here
from tidegate.capacity.rows import NUMBER, Rows
from tidegate.capacity.target import TargetError, in_few_words


class FunctionTarget(Here):
    """Calls a function."""

    def __init__(self, name: str, rows: Rows, threads: int, prepare_thread: Callable[[], None]) -> None:
        self._name = name
        self._rows = rows
        self._function: Callable[..., Any] = find
        self._takes_row = False
        super().__init__(threads, prepare_thread)

    async def open(self) -> None:
        """Import it."""
        self._function = find(self._name)
        self._takes_row = takes_one(self._function)

    async def ask(self, number: int) -> str | None:
        """Call it."""
        arguments: list[Any] = [{NUMBER: number, **self._rows[number]}] if self._takes_row else []
        try:
            if is_async(self._function):
                await self._function(*arguments)
            else:
                await self._in_thread(self._function, *arguments)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return in_few_words(error)
        return None

    async def idle(self) -> str | None:
        """What calling it costs, without the call."""
        return None if is_async(self._function) else await super().idle()

    async def close(self) -> None:
        """Let the threads end."""
        self._end_threads()

    @property
    def most_in_flight(self) -> int | None:
        """As many as there are threads, for a sync function."""
        return None if is_async(self._function) else self._threads

    def describe(self) -> Mapping[str, str]:
        """Its name."""
        return {"kind": "function", "function": self._name}


def find(name: str) -> Callable[..., Any]:
    """The function of a name such as `package.module:function`, looked for in the current folder, too.

    Raises:
        TargetError: There is none.
    """
    module_name, _, path = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module_name)
    except Exception as error:
        raise TargetError(
            f"Cannot import {module_name}: {in_few_words(error)}. Run this where Python finds the module."
        ) from error
    for part in path.split("."):
        found = getattr(found, part, None)
    function: Callable[..., Any] = found
    if not callable(function):
        raise TargetError(f"{module_name} has no function {path}: name one as module:function.")
    return function


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


def takes_one(function: Callable[..., Any]) -> bool:
    """Whether it wants the row."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # not all that is built in says
        return False
    wanted = [
        one
        for one in parameters
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) and one.default is one.empty
    ]
    if len(wanted) > 1:
        raise TargetError(
            f"The function takes {len(wanted)} arguments: it may take none, or one for the request's row."
        )
    return len(wanted) == 1
