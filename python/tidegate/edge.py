"""What every edge does, whatever protocol it speaks: ASGI, WSGI, Django.

A request is told its priority, admitted, marked as holding its permit (so that what it does inside takes no
second place of the same gate), and released once. Health checks have a small gate of their own: a full service
is not a dead one, and a flood of health checks is a flood.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypedDict

from tidegate._context import use_priority
from tidegate._errors import ConfigError, Shed
from tidegate._held import marked
from tidegate._names import Priority
from tidegate._native import Gate, Hold
from tidegate.http import ShedResponse, shed_response
from tidegate.priorities import PrioritySource, Request, TrustedHeader, priority_source

__all__ = ["HEALTH_PATHS", "Edge", "EdgeOptions", "PrioritySource", "Request", "TrustedHeader"]

HEALTH_PATHS = ("/health", "/healthz", "/livez", "/readyz")
HEALTH_LIMIT = 4

_MAX_NAME_BYTES = 255


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
            "METHOD /path/*" or "/path/*" to a priority, a `TrustedHeader`, a function from the framework's
            request to a priority or None, or a sequence of these, of which the first that knows decides. Where
            none does, the context and the gate's default decide. A name that is no priority, as a client may
            send one, counts as "sheddable". Gates inside use the priority, too (``use_priority``).
        health_paths: Paths that do not ask the gate, compared exactly.
        health_limit: How many health checks may be in flight at once besides; further ones ask the gate, as
            "critical_plus".
        status: The HTTP status of a shed: 503, or 429 where the gate is a client's quota.

    Raises:
        ConfigError: A pattern, a priority or the status breaks its rule.
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
        if isinstance(health_paths, str):
            raise TypeError("health_paths must be a collection of paths, got a str")
        if status not in (429, 503):
            raise ConfigError(f"status must be 503 or 429, got {status!r}")
        self.gate = gate
        self.status = status
        self._priority_of = priority_source(priority)
        self._health_paths = frozenset(health_paths)
        self._health = Gate(_health_name(gate), health_limit)

    @contextmanager
    def admitted(self, request: Request, gate: Gate | None = None) -> Iterator[Hold]:
        """Admits for the length of the block; its exception tells the outcome.

        Args:
            request: Who asks.
            gate: Another gate than the edge's, as for websockets.

        Raises:
            Shed: There is no room. The block is not entered.
        """
        if gate is None and request.path in self._health_paths:
            hold, priority = self._enter_health(), None
        else:
            priority = self._priority_of(request)
            hold = Hold.enter(gate or self.gate, priority=priority)
        with hold, marked(hold):
            if priority is None:
                yield hold
            else:
                with use_priority(priority):
                    yield hold

    def _enter_health(self) -> Hold:
        try:
            return Hold.enter(self._health)
        except Shed:
            return Hold.enter(self.gate, priority=Priority.CRITICAL_PLUS)

    def response(self, shed: Shed) -> ShedResponse:
        """The answer to a request that was shed, by this gate or one inside."""
        return shed_response(shed, self.status)


class Entry:
    """`Edge.admitted` for where no block spans the request: ended by a call, once."""

    def __init__(self, edge: Edge, request: Request) -> None:
        self._block = edge.admitted(request)
        self._block.__enter__()
        self._ended = False

    def end(self, error: BaseException | None = None) -> None:
        """Release. In the thread that the request runs in; a second call does nothing."""
        if not self._ended:
            self._ended = True
            self._block.__exit__(type(error) if error else None, error, error and error.__traceback__)


def shed_in(error: BaseException) -> Shed | None:
    """The error, if it is a Shed; the first one, if it is a group of nothing else (a TaskGroup's)."""
    if isinstance(error, Shed):
        return error
    if isinstance(error, BaseExceptionGroup):
        group: BaseExceptionGroup[Any] = error
        if group.split(Shed)[1] is None:
            return shed_in(group.exceptions[0])
    return None


def _health_name(gate: Gate) -> str:
    name = f"{gate.name}-health"
    return name if len(name.encode()) <= _MAX_NAME_BYTES else "health"
