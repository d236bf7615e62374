"""The priority of everything called inside a block."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

from tidegate._native import priority_from, read_priority_from

if TYPE_CHECKING:
    from types import TracebackType

    from tidegate._names import Priority

current: ContextVar[Priority | None] = ContextVar("tidegate_priority", default=None)


class use_priority:  # noqa: N801 - reads as a statement: with use_priority("sheddable")
    """Gates asked inside this block use this priority, unless one is given to them.

    It travels in a context variable: into tasks and ``asyncio.to_thread``, not into
    ``run_in_executor`` and threads of one's own.

    Args:
        priority: A Priority or its name.

    Raises:
        ConfigError: No priority has this name.
    """

    __slots__ = ("_priority", "_token")

    def __init__(self, priority: Priority | str) -> None:
        self._priority = priority_from(priority)
        self._token: Token[Priority | None] | None = None

    def __enter__(self) -> None:
        if self._token is not None:
            raise RuntimeError("this use_priority was already entered; make one for each block")
        read_priority_from(current)
        self._token = current.set(self._priority)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._token is None:
            return
        try:
            current.reset(self._token)
        except ValueError:
            # Some frameworks run the end of a block in a copy of the context it began in (FastAPI's
            # dependencies). The copy ends with the request, and the value with it.
            pass
