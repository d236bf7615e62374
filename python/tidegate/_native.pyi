import os
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import (
    Any,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    SupportsFloat,
    SupportsIndex,
    TypeVar,
    final,
    overload,
    type_check_only,
)

from tidegate._names import EventKind, Outcome, Priority, Reason
from tidegate._types import (
    ControllerName,
    EventKindLike,
    MappingOf,
    Match,
    OutcomeLike,
    Outcomes,
    PriorityLike,
    Thresholds,
)

__all__ = [
    "Admission",
    "Change",
    "Classifier",
    "Event",
    "Explanation",
    "Gate",
    "GateSum",
    "Gates",
    "Hold",
    "LimitChange",
    "ManualClock",
    "Permit",
    "Signal",
    "Stats",
    "Subscription",
    "Throttle",
    "UslFit",
    "fit_usl",
    "load",
    "oracle_degrading",
    "oracle_erlang_b",
    "oracle_thresholds",
    "priority_from",
    "read_priority_from",
    "simulate",
    "sums_here",
    "sums_in",
]

_P = ParamSpec("_P")
_R_co = TypeVar("_R_co", covariant=True)
_T = TypeVar("_T")

@final
class Gate:
    def __new__(
        cls,
        name: str,
        limit: SupportsIndex | None = None,
        *,
        controller: ControllerName | None = None,
        objective: SupportsFloat | None = None,
        min: SupportsIndex | None = None,  # noqa: A002
        max: SupportsIndex | None = None,  # noqa: A002
        prior: SupportsIndex | None = None,
        ceiling: SupportsIndex | None = None,
        signals: Iterable[Signal] | None = None,
        thresholds: Thresholds | None = None,
        rate: str | None = None,
        burst: SupportsIndex | None = None,
        default_priority: PriorityLike | None = "critical",
        enforce: bool = True,
        timing: bool = False,
        outcomes: Outcomes | None = None,
        clock: ManualClock | None = None,
    ) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def limit(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def thresholds(self) -> dict[Priority, int]: ...
    @property
    def rate(self) -> str | None: ...
    @property
    def burst(self) -> int | None: ...
    @property
    def default_priority(self) -> Priority: ...
    @property
    def enforce(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    @property
    def limit_history(self) -> list[LimitChange]: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self,
        _class: type[BaseException] | None,
        exception: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __aenter__(self) -> Awaitable[None]: ...
    def __aexit__(
        self,
        class_: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Awaitable[None]: ...
    def admit(self, *, priority: PriorityLike | None = None, weight: SupportsIndex = 1) -> Admission: ...
    def try_admit(
        self, *, priority: PriorityLike | None = None, weight: SupportsIndex = 1
    ) -> Permit | None: ...
    # The order matters: a staticmethod object can be called as well.
    @overload
    def guard(
        self,
        function: staticmethod[_P, _R_co],
        /,
        *,
        priority: PriorityLike | None = None,
        weight: SupportsIndex = 1,
    ) -> staticmethod[_P, _R_co]: ...
    @overload
    def guard(
        self,
        function: classmethod[_T, _P, _R_co],
        /,
        *,
        priority: PriorityLike | None = None,
        weight: SupportsIndex = 1,
    ) -> classmethod[_T, _P, _R_co]: ...
    @overload
    def guard(
        self,
        function: Callable[_P, _R_co],
        /,
        *,
        priority: PriorityLike | None = None,
        weight: SupportsIndex = 1,
    ) -> Callable[_P, _R_co]: ...
    @overload
    def guard(
        self, function: None = None, /, *, priority: PriorityLike | None = None, weight: SupportsIndex = 1
    ) -> _Decorator: ...
    def set_limit(self, n: SupportsIndex, *, cause: str | None = None) -> None: ...
    def set_thresholds(self, mapping: Thresholds) -> None: ...
    def set_rate(
        self, rate: str | None, *, burst: SupportsIndex | None = None, cause: str | None = None
    ) -> None: ...
    def set_enforce(self, flag: bool) -> None: ...
    def retry_after(
        self, *, priority: PriorityLike | None = None, weight: SupportsIndex = 1
    ) -> float | None: ...
    def close(self) -> None: ...
    def drain(self, timeout: float | None = None) -> bool: ...
    def drain_async(self, timeout: float | None = None) -> Coroutine[Any, Any, bool]: ...
    def _on_drained(self, callback: Callable[[], object]) -> int: ...
    def _forget_drained(self, waiting: int) -> None: ...
    def subscribe(
        self,
        hook: Callable[[Event], object],
        events: EventKindLike | Iterable[EventKindLike] | None = None,
    ) -> Subscription: ...
    def stats(self) -> Stats: ...

@final
class Signal:
    def __new__(
        cls,
        name: str,
        *,
        function: Callable[[], SupportsFloat | None] | None = None,
        enter: SupportsFloat = 0.85,
        leave: SupportsFloat = 0.7,
        full: SupportsFloat = 1.0,
        enter_for: SupportsFloat = 2.0,
        leave_for: SupportsFloat = 10.0,
        dwell: SupportsFloat = 5.0,
        ramp: SupportsFloat = 20.0,
        good_for: SupportsFloat = 1.0,
    ) -> Self: ...
    @property
    def name(self) -> str: ...

@final
class Gates(Mapping[str, Gate]):
    @staticmethod
    def from_toml(
        text: str,
        *,
        file: str = "<text>",
        outcomes: MappingOf[str, Outcomes] | None = None,
        clock: ManualClock | None = None,
    ) -> Gates: ...
    def reload(self, text: str | None = None) -> list[Change]: ...
    def explain(self) -> str: ...
    @property
    def classifier(self) -> Classifier | None: ...
    def classify(self, attributes: Mapping[str, str | None]) -> Priority | None: ...
    @property
    def path(self) -> Path | None: ...
    def __getitem__(self, name: str, /) -> Gate: ...
    @overload
    def get(self, name: str, default: None = None, /) -> Gate | None: ...
    @overload
    def get(self, name: str, default: Gate, /) -> Gate: ...
    @overload
    def get(self, name: str, default: _T, /) -> Gate | _T: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...

@final
class Change:
    @property
    def gate(self) -> str | None: ...
    @property
    def kind(self) -> Literal["added", "removed", "reopened", "stays_closed", "changed"]: ...
    @property
    def key(self) -> str | None: ...
    @property
    def previous(self) -> Any: ...
    @property
    def value(self) -> Any: ...

@type_check_only
class _Decorator(Protocol):
    @overload
    def __call__(self, function: staticmethod[_P, _R_co], /) -> staticmethod[_P, _R_co]: ...
    @overload
    def __call__(self, function: classmethod[_T, _P, _R_co], /) -> classmethod[_T, _P, _R_co]: ...
    @overload
    def __call__(self, function: Callable[_P, _R_co], /) -> Callable[_P, _R_co]: ...

@final
class Admission:
    def __enter__(self) -> Permit: ...
    def __exit__(
        self,
        _class: type[BaseException] | None,
        exception: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __aenter__(self) -> Awaitable[Permit]: ...
    def __aexit__(
        self,
        _class: type[BaseException] | None,
        exception: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> Awaitable[None]: ...
    def __await__(self) -> Generator[None, None, Permit]: ...

@final
class Permit:
    @property
    def priority(self) -> Priority: ...
    @property
    def weight(self) -> int: ...
    @property
    def over(self) -> bool: ...
    @property
    def released(self) -> bool: ...
    def release(self, outcome: OutcomeLike = "success") -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _class: type[BaseException] | None,
        exception: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Hold:
    @staticmethod
    def enter(
        gate: Gate, *, priority: PriorityLike | None = None, weight: SupportsIndex | None = None
    ) -> Hold: ...
    def join(self) -> Hold | None: ...
    def is_of(self, gate: Gate) -> bool: ...
    @property
    def permit(self) -> Permit: ...
    @property
    def released(self) -> bool: ...
    def leave(self, outcome: OutcomeLike = "success") -> bool: ...
    def end(self, exception: BaseException | None) -> bool: ...
    def fail(self, exception: BaseException) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _class: type[BaseException] | None,
        exception: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Stats:
    @property
    def limit(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def high_water(self) -> int: ...
    @property
    def admitted(self) -> dict[Priority, int]: ...
    @property
    def shed(self) -> dict[Priority, dict[Reason, int]]: ...
    @property
    def would_shed(self) -> dict[Priority, int]: ...
    @property
    def released(self) -> dict[Outcome, int]: ...
    @property
    def unmatched_exits(self) -> int: ...
    @property
    def collected(self) -> int: ...
    @property
    def fallback_priority(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def over_in_flight(self) -> int: ...
    @property
    def occupancy(self) -> float | None: ...
    def latency(self, q: float, priority: PriorityLike) -> float | None: ...

@final
class Classifier:
    def __new__(
        cls,
        rules: Iterable[Mapping[str, Any]] = (),
        *,
        default: PriorityLike | None = None,
        essential: Iterable[Match] | None = None,
    ) -> Self: ...
    def classify(self, attributes: Mapping[str, str | None]) -> Priority | None: ...
    def explain(self, attributes: Mapping[str, str | None]) -> Explanation: ...
    @property
    def attributes(self) -> tuple[str, ...]: ...
    @property
    def default(self) -> Priority | None: ...

@final
class Explanation:
    @property
    def priority(self) -> Priority | None: ...
    @property
    def rule(self) -> int | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def text(self) -> str | None: ...

@final
class Event:
    @property
    def kind(self) -> EventKind: ...
    @property
    def gate(self) -> str: ...
    @property
    def at(self) -> float: ...
    @property
    def priority(self) -> Priority | None: ...
    @property
    def reason(self) -> Reason | None: ...
    @property
    def outcome(self) -> Outcome | None: ...
    @property
    def duration(self) -> float | None: ...
    @property
    def weight(self) -> int | None: ...
    @property
    def over(self) -> bool | None: ...
    @property
    def in_flight(self) -> int | None: ...
    @property
    def previous(self) -> int | None: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def cause(self) -> str | None: ...
    @property
    def thresholds(self) -> dict[Priority, int] | None: ...
    @property
    def enforce(self) -> bool | None: ...
    @property
    def rate(self) -> str | None: ...
    @property
    def burst(self) -> int | None: ...
    @property
    def fields(self) -> dict[str, Any]: ...

@final
class Subscription:
    def __call__(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _class: type[BaseException] | None,
        exception: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class LimitChange:
    @property
    def at(self) -> float: ...
    @property
    def previous(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def cause(self) -> str | None: ...

@final
class ManualClock:
    def __new__(cls, now_ns: int = 0) -> Self: ...
    @property
    def now_ns(self) -> int: ...
    def set(self, now_ns: int) -> None: ...
    def advance(self, ns: int) -> None: ...

@final
class Throttle:
    def __new__(cls, interval: float) -> Self: ...
    def let_through(self, event: Event, read: bool) -> int | None: ...
    def take_suppressed(self) -> int: ...

@type_check_only  # it exists, but the module does not export it
class Door:
    @property
    def rate(self) -> str | None: ...
    def enter(self) -> None: ...
    def exit(
        self,
        _class: type[BaseException] | None,
        exception: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None: ...
    def retry_after(self, priority: Priority, weight: int) -> float | None: ...

@final
class GateSum:
    @property
    def gate(self) -> str: ...
    @property
    def processes(self) -> int: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def in_flight(self) -> int | None: ...
    @property
    def requests(self) -> list[tuple[str, str, str, int]]: ...
    @property
    def released(self) -> list[tuple[str, int]]: ...
    @property
    def durations(self) -> list[tuple[str, list[tuple[float, int]], float]]: ...
    @property
    def limit_changes(self) -> list[tuple[str, int]]: ...

@final
class UslFit:
    @property
    def lambda_(self) -> float: ...
    @property
    def sigma(self) -> float: ...
    @property
    def kappa(self) -> float: ...
    @property
    def residuals(self) -> list[float]: ...
    @property
    def best_concurrency(self) -> float | None: ...
    @property
    def best_throughput(self) -> float | None: ...
    def throughput(self, concurrency: float) -> float: ...

def fit_usl(
    points: Sequence[tuple[float, float] | tuple[float, float, float]], *, kappa: bool = True
) -> UslFit: ...
def load(
    path: str | os.PathLike[str],
    *,
    outcomes: MappingOf[str, Outcomes] | None = None,
    clock: ManualClock | None = None,
) -> Gates: ...
def sums_here(gates: list[Gate] | None = None) -> list[GateSum]: ...
def sums_in(directory: str | os.PathLike[str]) -> tuple[list[GateSum], int, int]: ...
def simulate(text: str, file: str, seed: int) -> str: ...
def oracle_erlang_b(
    limit: int,
    offered: float,
    /,
    *,
    service: str = "exponential",
    seed: int = 1,
    dry_run: bool = False,
    bare: bool = False,
) -> tuple[str, str | None]: ...
def oracle_degrading(
    rate: float,
    limit: int,
    lambda_: float,
    sigma: float,
    kappa: float,
    /,
    *,
    service: str = "exponential",
    seed: int = 1,
) -> tuple[str, str | None]: ...
def oracle_thresholds(
    limit: int,
    thresholds: list[int],
    offered: list[float],
    /,
    *,
    service: str = "exponential",
    seed: int = 1,
    dry_run: bool = False,
    bare: bool = False,
) -> tuple[str, str | None]: ...
def priority_from(value: object) -> Priority: ...
def read_priority_from(variable: ContextVar[Any]) -> None: ...
