"""The exceptions of the package."""

from __future__ import annotations

from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate._names import Priority, Reason

if TYPE_CHECKING:
    from tidegate._native import Door

_Arguments = tuple[str, Reason, Priority, int, int, float | None, str | None]
_Rebuilt = tuple[type["Shed"], _Arguments, dict[str, Any] | None]

# What can never fit here may fit after a change of the limit.
_NEVER_SECONDS = 60
_DAY_SECONDS = 86_400


class TidegateError(Exception):
    """The base of everything the package raises of its own."""


class Problem(NamedTuple):
    """One thing that is wrong with a configuration file."""

    line: int
    """The line, from 1; 0 where it is about the file as a whole."""
    key: str
    """The key, as ``gates.db.limit``; empty where the file is no TOML."""
    message: str
    """The rule and the value that breaks it."""


class ConfigError(TidegateError, ValueError):
    """A value breaks its rule. The message names both, and nothing was changed."""

    problems: tuple[Problem, ...] = ()
    """All that is wrong with a configuration file, in the order of its lines; empty for anything else."""


class Shed(TidegateError):  # noqa: N818 - an outcome, not an error
    """The request was turned away: try again later.

    Never a TimeoutError, which is an OSError and would be repeated at once by many a retry policy.
    Nothing is formatted or computed until it is asked for.

    Args:
        gate: The name of the gate.
        reason: Why.
        priority: The priority that was asked for.
        in_flight: The weight in flight at the decision.
        limit: The gate's limit at the decision.
        retry_after: Seconds to stay away; None for unknown, infinity for ever.
        rate: The gate's rate and burst in words, where there is one.
    """

    args: tuple[str, Reason, Priority, int, int]

    # Native code makes instances without calling __init__, and leaves the gate's native part and the
    # weight in _asked, from which retry_after and rate are computed.
    __slots__ = ("_asked", "_rate", "_retry_after")

    _asked: tuple[Door, int]
    _retry_after: float | None
    _rate: str | None

    def __init__(
        self,
        gate: str,
        reason: str,
        priority: str,
        in_flight: int,
        limit: int,
        retry_after: float | None = None,
        rate: str | None = None,
    ) -> None:
        super().__init__(gate, Reason(reason), Priority(priority), in_flight, limit)
        self._retry_after = retry_after
        self._rate = rate

    @property
    def gate(self) -> str:
        """The name of the gate."""
        return self.args[0]

    @property
    def reason(self) -> Reason:
        """Why the request was turned away."""
        return self.args[1]

    @property
    def priority(self) -> Priority:
        """The priority that was asked for, or fell back to."""
        return self.args[2]

    @property
    def in_flight(self) -> int:
        """The weight in flight when the decision was made."""
        return self.args[3]

    @property
    def limit(self) -> int:
        """The gate's limit when the decision was made."""
        return self.args[4]

    @property
    def retry_after(self) -> float | None:
        """Seconds to stay away, at least; None for unknown, infinity for ever.

        Computed when first asked for, and kept.
        """
        try:
            return self._retry_after
        except AttributeError:
            door, weight = self._asked
            self._retry_after = door.retry_after(self.priority, weight)
            return self._retry_after

    @property
    def rate(self) -> str | None:
        """The gate's rate and burst, as "150/min (burst 10)"; None where it has none.

        Asked for when this first is, and kept.
        """
        try:
            return self._rate
        except AttributeError:
            door, _ = self._asked
            self._rate = door.rate
            return self._rate

    @property
    def retry_after_header(self) -> str:
        """The value of an HTTP Retry-After header: whole seconds, at least 1, jittered upwards.

        The jitter keeps those who were shed together from coming back together. Unknown counts as one
        second, never as a minute, since another replica may answer.
        """
        from random import randint  # loaded when the first header is made

        # After closing, this process admits nothing more, but its successor or a replica may at once.
        closed = self.reason is Reason.CLOSED
        seconds = retry_after_seconds(None if closed else self.retry_after)
        return str(seconds + randint(0, max(1, seconds // 2)))  # noqa: S311 - no secret

    def __str__(self) -> str:
        if self.reason is Reason.CLOSED:
            return f"gate '{self.gate}' is closed"
        full = f"{self.in_flight} of {self.limit} in flight (priority {self.priority})"
        why = self._why()
        wait = self.retry_after
        if wait is None:
            return f"gate '{self.gate}' {why}: {full}"
        hint = f"retry in about {wait:.2g} s" if isfinite(wait) else "no retry can succeed"
        return f"gate '{self.gate}' {why}: {full}; {hint}"

    def _why(self) -> str:
        if self.reason is Reason.LIMIT:
            return "full"
        if self.reason is Reason.RATE:
            return f"over its rate of {self.rate}" if self.rate else "over its rate"
        return f"shed by {self.reason}"

    def __repr__(self) -> str:
        return (
            f"Shed(gate={self.gate!r}, reason={str(self.reason)!r}, priority={str(self.priority)!r}, "
            f"in_flight={self.in_flight}, limit={self.limit})"
        )

    def __reduce__(self) -> _Rebuilt:
        return type(self), (*self.args, self.retry_after, self.rate), self.__dict__ or None  # notes


def retry_after_seconds(wait: float | None) -> int:
    """Whole seconds for a wait: rounded up, so that nobody returns too early, from 1 to a day.

    What is unknown is 1, and what is for ever a minute.
    """
    if wait == inf:
        return _NEVER_SECONDS
    if wait is None or not wait > 0:
        return 1
    return ceil(min(wait, _DAY_SECONDS))
