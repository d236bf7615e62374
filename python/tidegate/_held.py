"""Which permits the running request holds, so that what it does inside takes no second place.

An edge (middleware, interceptor, task guard) takes the permit and marks the request's context with it. Pool
hooks and ``guard`` ask here first, and join the permit of their gate if the request has one. A pool hook
marks its own permits, too, but only for the task or thread that checked the connection out: a task that holds
one connection for long must not let in everything it starts.

The mark is a hint and never the permit's owner. A mark that is lost (a thread of one's own,
``run_in_executor``) costs a second place; one that outlives its permit is not joined any more.
"""

from __future__ import annotations

import sys
from _thread import get_ident  # threading itself is not needed
from contextvars import ContextVar
from typing import TYPE_CHECKING
from weakref import ref

from tidegate._native import Hold

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tidegate._native import Gate

    _Owner = Callable[[], object]
    _Mark = tuple[ref[Hold], _Owner | None]
    """A hold, and who alone may join it: a function to what `_who` says; None for the whole context."""

marks: ContextVar[tuple[_Mark, ...]] = ContextVar("tidegate_held", default=())


def joined(gate: Gate) -> Hold | None:
    """A further hold of the permit that the request has of this gate, or None."""
    for mark, owner in marks.get():
        hold = mark()
        if hold is not None and hold.is_of(gate) and (owner is None or owner() == _who()):
            further = hold.join()
            if further is not None:
                return further
    return None


def check_out(gate: Gate) -> Hold:
    """For a pool hook: a hold for one connection, of the request's permit or of a new one.

    Raises:
        Shed: The request has no permit of this gate, and there is no room for one.
    """
    hold = joined(gate) or Hold.enter(gate)
    # Also one that joined: the first may leave and be gone before it.
    _mark(hold, _reference_to(_who()))
    return hold


class marked:  # noqa: N801 - reads as a statement: with marked(hold)
    """For an edge: everything called inside, in this context or a copy of it, may join the hold."""

    __slots__ = ("_before", "_hold")

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    def __enter__(self) -> None:
        self._before = marks.get()
        _mark(self._hold, None)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Not by a token: a framework may run the end of a block in a copy of the context it began in.
        marks.set(self._before)


def _mark(hold: Hold, owner: _Owner | None) -> None:
    alive = [mark for mark in marks.get() if (held := mark[0]()) is not None and not held.released]
    # A mark keeps nothing alive: a hold that an interrupt has lost is collected, and with it the permit.
    marks.set((*alive, (ref(hold), owner)))


def _who() -> object:
    """The running task, or the thread where none runs."""
    asyncio = sys.modules.get("asyncio")  # not imported for this: without it no task runs
    try:
        task = asyncio and asyncio.current_task()
    except (RuntimeError, AttributeError):  # no loop runs here; another thread is just importing it
        task = None
    return task or get_ident()


def _reference_to(who: object) -> _Owner:
    # Not the task itself: it refers to its context, and that to the mark.
    return (lambda: who) if isinstance(who, int) else ref(who)
