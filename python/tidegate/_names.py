"""The words of the core as enums. Each member is also its name as a string."""

from enum import StrEnum


class Priority(StrEnum):
    """How important a request is; more important compares greater.

    Wherever a priority is taken its name is, too; "essential" and "non-essential" are further names for
    CRITICAL and SHEDDABLE.
    """

    CRITICAL_PLUS = "critical_plus"
    CRITICAL = "critical"
    SHEDDABLE_PLUS = "sheddable_plus"
    SHEDDABLE = "sheddable"

    @classmethod
    def _missing_(cls, value: object) -> "Priority | None":
        aliases: dict[object, Priority] = {"essential": cls.CRITICAL, "non-essential": cls.SHEDDABLE}
        return aliases.get(value)

    @property
    def level(self) -> int:
        """0 (most important) to 3, as in the C ABI."""
        return _LEVELS[self]

    # A string's own order would put "critical" below "sheddable".
    def __lt__(self, other: str) -> bool:
        return self.level > Priority(other).level

    def __le__(self, other: str) -> bool:
        return self.level >= Priority(other).level

    def __gt__(self, other: str) -> bool:
        return self.level < Priority(other).level

    def __ge__(self, other: str) -> bool:
        return self.level <= Priority(other).level


_LEVELS = {priority: level for level, priority in enumerate(Priority)}


class Outcome(StrEnum):
    """What a permit's work came to."""

    SUCCESS = "success"
    """The resource answered, even with an error of its own."""
    OVERLOAD = "overload"
    """The resource was too busy: timed out, pool exhausted."""
    IGNORE = "ignore"
    """The work says nothing about the resource: cancelled, interrupted, never begun."""


class EventKind(StrEnum):
    """What happened at a gate, as hooks are told."""

    SHED = "shed"
    """A request was turned away."""
    LIMIT = "limit"
    """The limit was set, or a controller moved it on evidence."""
    THRESHOLDS = "thresholds"
    """The thresholds were set."""
    ENFORCE = "enforce"
    """Dry run was switched on or off."""
    CLOSED = "closed"
    """The gate was closed: the call that did it, not a later one."""
    DRAINED = "drained"
    """Everything inside the closed gate has left."""
    RATE = "rate"
    """The rate was set, or taken away."""
    PRESSURE = "pressure"
    """A signal became overloaded, or is not any more."""
    RELEASED = "released"
    """A permit was given back. Not told unless asked for, and never of bare ``with gate:`` blocks."""


class Reason(StrEnum):
    """Why a request was turned away."""

    LIMIT = "limit"
    PRIORITY = "priority"
    RATE = "rate"
    PRESSURE = "pressure"
    CLOSED = "closed"
    TIMEOUT = "timeout"
    SHARE = "share"
