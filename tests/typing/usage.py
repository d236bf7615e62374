"""How the package is used, for type checkers: `scripts/check.sh` runs them over this file, nobody runs it.

Each assert_type pins what a user's editor shows.
"""

from asyncio import create_task
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import assert_type

from tidegate import (
    Change,
    Classifier,
    ConfigError,
    Event,
    EventKind,
    Explanation,
    Gate,
    Gates,
    LimitChange,
    Outcome,
    Permit,
    Priority,
    Problem,
    Reason,
    Shed,
    Stats,
    Subscription,
    load,
    use_priority,
)
from tidegate.asgi import App, GateMiddleware, Message, Receive, Scope, Send
from tidegate.http import shed_response
from tidegate.logs import log_events
from tidegate.otel import instrument
from tidegate.testing import ManualClock

gate = Gate("db", limit=20)


# --- making and changing a gate ----------------------------------------------------------------

Gate(
    "db",
    20,
    thresholds={"sheddable_plus": 0.9, Priority.SHEDDABLE: {"reserve": 5}},
    default_priority="essential",
    enforce=False,
    timing=True,
    outcomes={ConnectionError: "overload", KeyError: Outcome.IGNORE},
    clock=ManualClock(),
)
gates = load("tidegate.toml", outcomes={"db": {TimeoutError: "overload"}}, clock=ManualClock())
assert_type(gates, Gates)
assert_type(gates["db"], Gate)
assert_type(gates.get("db"), Gate | None)
assert_type(dict(gates), dict[str, Gate])
assert_type(gates.path, Path | None)
assert_type(gates.classifier, Classifier | None)
assert_type(gates.classify({"path": "/", "user": None}), Priority | None)
assert_type(Gates.from_toml("", file="mine"), Gates)
for change in gates.reload():
    assert_type(change, Change)
    assert_type(change.gate, str | None)
try:
    gates.reload("")
except ConfigError as bad:
    assert_type(bad.problems, tuple[Problem, ...])
shares: dict[Priority, float] = {Priority.SHEDDABLE: 0.5}
timeouts: dict[type[OSError], Outcome] = {TimeoutError: Outcome.OVERLOAD}
Gate("db", 20, thresholds=shares, outcomes=timeouts)
gate.set_thresholds({"non-essential": 1})
gate.set_limit(30, cause="deploy")
gate.set_enforce(True)
assert_type(gate.thresholds, dict[Priority, int])
assert_type(gate.default_priority, Priority)
assert_type(gate.limit_history, list[LimitChange])
assert_type(gate.retry_after(priority="sheddable", weight=2), float | None)
assert_type(gate.drain(timeout=1.5), bool)


# --- blocks ------------------------------------------------------------------------------------


def blocks() -> int:
    with gate as nothing:
        assert_type(nothing, None)
    with gate.admit(priority=Priority.SHEDDABLE, weight=2) as permit:
        assert_type(permit, Permit)
        assert_type(permit.priority, Priority)
    with use_priority("sheddable"), gate:
        return 1  # a block that swallowed exceptions would make this function return None, too


async def async_blocks() -> int:
    async with gate as nothing:
        assert_type(nothing, None)
    async with gate.admit() as permit:
        assert_type(permit, Permit)
    assert_type(await gate.admit(), Permit)
    assert_type(await gate.drain_async(1), bool)
    async with gate:
        return 1


def by_hand() -> None:
    permit = gate.try_admit(priority="non-essential")
    assert_type(permit, Permit | None)
    if permit is None:
        return
    assert_type(permit, Permit)
    with permit as same:
        assert_type(same, Permit)
    assert_type(permit.release("overload"), bool)
    permit.release(Outcome.IGNORE)


# --- classifiers -------------------------------------------------------------------------------


classifier = Classifier(
    [
        {
            "match": {"method": ["GET", "HEAD"], "path": "/reports/*"},
            "priority": "sheddable",
            "name": "reports",
        },
        {"match": {"header": {"x-plan": ("free", "trial")}}, "priority": Priority.SHEDDABLE},
    ],
    default="essential",
)
Classifier(essential=({"path": path} for path in ("/chat/*", "/search")))
names: dict[str, str] = {"method": "GET"}
assert_type(classifier.classify(names), Priority | None)
assert_type(classifier.classify({"client": None}), Priority | None)
assert_type(classifier.explain(names), Explanation)
assert_type(classifier.explain(names).priority, Priority | None)
assert_type(classifier.explain(names).rule, int | None)
assert_type(classifier.explain(names).name, str | None)
assert_type(classifier.explain(names).text, str | None)
assert_type(classifier.attributes, tuple[str, ...])
assert_type(classifier.default, Priority | None)


# --- guard keeps signatures --------------------------------------------------------------------


@gate.guard
def plain(a: int, *, b: str = "") -> float:
    return a + len(b)


@gate.guard(priority="sheddable", weight=2)
async def coroutine(a: int) -> str:
    return str(a)


@gate.guard
def generator(n: int) -> Generator[int, str, bool]:
    yield n
    return True


@gate.guard
def iterator(n: int) -> Iterator[int]:
    yield n


@gate.guard(weight=3)
async def async_generator(n: int) -> AsyncGenerator[int, None]:
    yield n


assert_type(plain(1, b="x"), float)
assert_type(generator(1), Generator[int, str, bool])
assert_type(iterator(1), Iterator[int])
assert_type(async_generator(1), AsyncGenerator[int, None])
assert_type(gate.guard(partial(plain, 1))(b="x"), float)
assert_type(gate.guard(lambda: 1)(), int)


class Repository:
    @gate.guard
    def method(self, key: int) -> str:
        return str(key)

    @gate.guard(priority=Priority.SHEDDABLE)
    async def async_method(self, key: int) -> str:
        return str(key)

    @gate.guard
    @staticmethod
    def static(key: int) -> str:
        return str(key)

    @staticmethod
    @gate.guard
    def guarded_static(key: int) -> str:
        return str(key)

    @gate.guard(weight=2)
    @classmethod
    def build(cls, key: int) -> "Repository":
        del key
        return cls()

    @property
    @gate.guard
    def size(self) -> int:
        return 1


repository = Repository()
assert_type(repository.method(1), str)
assert_type(Repository.method(repository, key=1), str)
assert_type(Repository.static(1), str)
assert_type(repository.static(key=1), str)
assert_type(Repository.guarded_static(1), str)
assert_type(Repository.build(1), Repository)
assert_type(repository.size, int)

as_callback: Callable[[int], Awaitable[str]] = coroutine


async def coroutines() -> None:
    assert_type(await coroutine(a=1), str)
    assert_type(await repository.async_method(key=1), str)
    task = create_task(coroutine(1))  # a coroutine still, not merely awaitable
    assert_type(await task, str)


# --- events ------------------------------------------------------------------------------------


def hook(event: Event) -> None:
    assert_type(event.kind, EventKind)
    assert_type(event.reason, Reason | None)
    assert_type(event.outcome, Outcome | None)
    assert_type(event.duration, float | None)
    assert_type(event.limit, int | None)


unsubscribe = gate.subscribe(hook)
assert_type(unsubscribe, Subscription)
unsubscribe()
with gate.subscribe(hook, events=["shed", EventKind.RELEASED]):
    gate.subscribe(print, "limit")
end_of_logging: Callable[[], None] = log_events(gate, interval=60)
uninstrument: Callable[[], None] = instrument(gate)


# --- sheds, statistics, middleware -------------------------------------------------------------


def sheds() -> None:
    try:
        blocks()
    except Shed as shed:
        assert_type(shed.reason, Reason)
        assert_type(shed.priority, Priority)
        assert_type(shed.retry_after, float | None)
        assert_type(shed.retry_after_header, str)
        status, headers, body = shed_response(shed)
        assert_type(status, int)
        assert_type(headers, dict[str, str])
        assert_type(body, bytes)


def statistics(stats: Stats) -> None:
    assert_type(stats.admitted[Priority.CRITICAL], int)
    assert_type(stats.shed[Priority.SHEDDABLE][Reason.PRIORITY], int)
    assert_type(stats.would_shed, dict[Priority, int])
    assert_type(stats.released[Outcome.SUCCESS], int)
    assert_type(stats.occupancy, float | None)
    assert_type(stats.latency(0.99, "critical"), float | None)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    message: Message = {"type": "http.response.start", "status": 200, "headers": []}
    await send(message)


def priority_of(scope: Scope) -> str | None:
    return "sheddable" if scope["path"].startswith("/reports/") else None


edge: App = GateMiddleware(application, gate, health_paths=["/up"], priority=priority_of)
GateMiddleware(application, gate, priority=[classifier, {"/reports/*": "sheddable"}])
