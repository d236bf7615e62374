"""Types of arguments, for type checkers: nothing imports this at run time."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar

from tidegate._names import EventKind, Outcome, Priority

PriorityName: TypeAlias = Literal[
    "critical_plus", "critical", "essential", "sheddable_plus", "sheddable", "non-essential"
]
PriorityLike: TypeAlias = Priority | PriorityName

OutcomeLike: TypeAlias = Outcome | Literal["success", "overload", "ignore"]


EventKindLike: TypeAlias = (
    EventKind
    | Literal["shed", "limit", "thresholds", "enforce", "closed", "drained", "rate", "pressure", "released"]
)


ControllerName: TypeAlias = Literal["fixed", "aimd", "gradient2", "vegas", "goodput"]


class Reserve(TypedDict):
    """So much weight of the limit is kept for more important priorities."""

    reserve: int


_Key = TypeVar("_Key", covariant=True)
_Value = TypeVar("_Value", covariant=True)


class MappingOf(Protocol[_Key, _Value]):
    """A mapping, of which only the items are read.

    ``Mapping`` is invariant in its keys: it would refuse a ``dict[Priority, float]`` where names of
    priorities are taken, too.
    """

    def items(self) -> Iterable[tuple[_Key, _Value]]:
        """As a mapping has it."""
        ...


Thresholds: TypeAlias = MappingOf[PriorityLike, float | Reserve]
Outcomes: TypeAlias = MappingOf[type[BaseException], OutcomeLike]

Match: TypeAlias = Mapping[str, "str | Iterable[str] | Mapping[str, Any]"]
