"""What every edge does, whatever protocol it speaks: ASGI, WSGI, Django.

A request is told its priority, admitted, marked as holding its permit (so that what it does inside takes no
second place of the same gate), and released once. Health checks have a small gate of their own: a full
service is not a dead one, and a flood of health checks is a flood.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterable,
)
from contextlib import contextmanager
from enum import Enum
from typing import Any, ParamSpec, TypedDict, TypeVar, cast
from weakref import ref

from tidegate._arguments import check_gate
from tidegate._context import current
from tidegate._errors import ConfigError, Shed
from tidegate._held import marks
from tidegate._names import Priority
from tidegate._native import Gate, Hold, read_priority_from
from tidegate.http import check_status
from tidegate.priorities import PrioritySource, Request, TrustedHeader, priority_source

__all__ = ["HEALTH_PATHS", "Edge", "EdgeOptions", "PrioritySource", "Request", "TrustedHeader"]

HEALTH_PATHS = ("/health", "/healthz", "/livez", "/readyz")
HEALTH_LIMIT = 4

_MAX_NAME_BYTES = 255

Part = TypeVar("Part")
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class EdgeOptions(TypedDict, total=False):
    """What can be chosen at every edge. See `Edge`."""

    priority: PrioritySource | None
    health_paths: Collection[str]
    health_limit: int
    status: int


class Edge:
    """The admission of requests through a gate.

    Args:
        gate: The gate. Its limit holds for this process.
        priority: The priority of each request: a Priority or its name for all of them, a mapping from
            "METHOD /path/*" or "/path/*" to a priority, a `Classifier` with rules on method, path, client and
            header.NAME, `Gates` whose file has such rules, a `TrustedHeader`, a function from the framework's
            request to a priority or None, or a sequence of these, of which the first that knows decides.
            Where none does, the context and the gate's default decide. A name that is no priority, as a
            client may send one, counts as "sheddable". Gates inside use it, too (``use_priority``).
        health_paths: Paths that do not ask the gate, compared exactly.
        health_limit: How many health checks may be in flight at once besides; further ones ask the gate, as
            "critical_plus".
        status: The HTTP status of a shed: 503, or 429 where the gate is a client's quota.

    Raises:
        ConfigError: A pattern, a priority, a health path or the status breaks its rule.
        TypeError: An option has the wrong type.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        priority: PrioritySource | None = None,
        health_paths: Collection[str] = HEALTH_PATHS,
        health_limit: int = HEALTH_LIMIT,
        status: int = 503,
    ) -> None:
        check_gate(gate)
        if isinstance(health_paths, str):
            raise TypeError("health_paths must be a collection of paths, got a str")
        for path in health_paths:
            if not isinstance(path, str) or not path.startswith("/"):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"a health path must begin with '/', got {path!r}")
        check_status(status)
        self.gate = gate
        self.status = status
        self._priority_of = priority_source(priority)
        self._health_paths = frozenset(health_paths)
        self._health = Gate(_health_name(gate), health_limit)

    def enter(self, request: Request, gate: Gate | None = None) -> Entry:
        """Admits a request; whoever calls this ends it.

        Args:
            request: Who asks.
            gate: Another gate than the edge's, as for websockets.

        Raises:
            Shed: There is no room.
        """
        _forget_an_interrupted_request()
        if gate is None and request.path in self._health_paths:
            return Entry(self._enter_health(), None)
        priority = self._priority_of(request)
        return Entry(Hold.enter(gate or self.gate, priority=priority), priority)

    @contextmanager
    def admitted(self, request: Request, gate: Gate | None = None) -> Generator[Hold]:
        """`enter` for where one block spans the request; its exception tells the outcome."""
        entry = self.enter(request, gate)
        with entry.hold, entry.step():
            yield entry.hold

    def _enter_health(self) -> Hold:
        try:
            return Hold.enter(self._health)
        except Shed:
            return Hold.enter(self.gate, priority=Priority.CRITICAL_PLUS)


class Entry:
    """A request inside: it holds its permit until `end`, and works in steps that a server calls one by one.

    Between the steps the server's context is as it was, whatever becomes of the request. Only the package's
    own variables are exchanged: what else an application keeps there (Django its caches) stays there.

    Args:
        hold: Its permit.
        priority: What gates inside use; None leaves it to the context.
    """

    def __init__(self, hold: Hold, priority: Priority | None) -> None:
        self.hold = hold
        marks, inherited = _values()
        self._values = (*marks, (ref(self.hold), None)), priority or inherited
        if priority is not None:
            read_priority_from(current)

    @contextmanager
    def step(self) -> Generator[None]:
        """Work on the request. An error that leaves the block ends it."""
        outside = _values()
        try:
            _set_values(self._values)
            yield
        except BaseException as error:
            self.end(error)
            raise
        finally:
            self._values = _values()
            _set_values(outside)

    def run(self, work: Callable[[], object]) -> None:
        """One step."""
        with self.step():
            work()

    def steps(self, parts: Iterable[Part]) -> Generator[Part]:
        """The parts of a body, each made in a step. An iteration that is cut short ends the request."""
        with self.step():
            iterator = iter(parts)
        while True:
            with self.step():
                part = next(iterator, _End.END)
            if part is _End.END:
                return
            try:
                yield part
            except GeneratorExit as error:
                self.end(error)
                raise

    async def async_steps(self, parts: AsyncIterable[Part]) -> AsyncGenerator[Part]:
        """`steps` of an asynchronous body. Whoever closes it tells what it is when it is cut short."""
        with self.step():
            iterator = aiter(parts)
        while True:
            with self.step():
                part = await anext(iterator, _End.END)
            if part is _End.END:
                return
            yield part

    def end(self, error: BaseException | None = None) -> None:
        """Release; the error, or None, tells the outcome. A second call does nothing."""
        self.hold.end(error)


class _End(Enum):
    END = 0


def _values() -> tuple[tuple[Any, ...], Priority | None]:
    """What the context says of the request."""
    return marks.get(), current.get()


def _set_values(values: tuple[tuple[Any, ...], Priority | None]) -> None:
    # In this order: a priority that an interrupt leaves behind has a mark beside it, which tells.
    current.set(values[1])
    marks.set(values[0])


def _forget_an_interrupted_request() -> None:
    """An interrupt can keep a request from putting back what the context said before it.

    The priority there is then none of the next request's.
    """
    edges = [mark() for mark, owner in marks.get() if owner is None]
    if edges and all(hold is None or hold.released for hold in edges):
        _set_values(((), None))


def outside(call: Callable[Arguments, Awaitable[Answer]]) -> Callable[Arguments, Awaitable[Answer]]:
    """What a server gives a request to call, outside of the request: with what the context says now.

    asyncio copies the context in which a server resumes reading or starts a pipelined request, and later
    requests on the connection run in copies of it (cpython#140947). They are to find no permit and no
    priority of this one there, which may still be at work.
    """
    server_side = _values()

    async def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        inside = _values()
        _set_values(server_side)
        try:
            return await call(*args, **kwargs)
        finally:
            _set_values(inside)

    return called


def shed_in(error: BaseException) -> Shed | None:
    """The error, if it is a Shed; the first one, if it is a group of nothing else (a TaskGroup's)."""
    if isinstance(error, Shed):
        return error
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        if group.split(Shed)[1] is None:
            return shed_in(group.exceptions[0])
    return None


def _health_name(gate: Gate) -> str:
    name = f"{gate.name}-health"
    return name if len(name.encode()) <= _MAX_NAME_BYTES else "health"
