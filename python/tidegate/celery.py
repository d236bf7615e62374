"""A gate for Celery tasks: a base class, asked when the body of a task starts in the worker.

A task that is shed is tried again later, or dropped. The gate counts what runs in one process. Under the
pools ``threads``, ``gevent`` and ``eventlet`` this is the whole worker. Under ``prefork`` it is a child with
one task at a time: there a gate of tasks does not fill, the worker's ``--concurrency`` is the limit, and what
this class is good for is the sheds of gates that the body asks.

Tested with Celery 5.7.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from math import inf
from random import uniform
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeAlias, get_args

from celery import Task
from celery.exceptions import Ignore, Reject, Retry, SoftTimeLimitExceeded

from tidegate._arguments import check_gate
from tidegate._context import use_priority
from tidegate._errors import ConfigError, Shed
from tidegate._held import joined
from tidegate._names import Outcome, Priority, Reason
from tidegate._native import Classifier, Gate, Gates, Hold, priority_from
from tidegate.edge import Entry, shed_in
from tidegate.priorities import classified, sent_priority

__all__ = ["PRIORITY_HEADER", "GatedTask"]

PRIORITY_HEADER = "tidegate-priority"

OnShed = Literal["retry", "reject", "ignore"]

_SHORTEST = 1.0  # seconds: less than a trip through the broker is worth
_LONGEST = 600.0
_DOUBLINGS = 10

if TYPE_CHECKING:
    _Task: TypeAlias = Task[..., Any]
else:
    _Task = Task


class GatedTask(_Task):
    """The base of a task that holds a permit while it runs: ``@app.task(base=GatedTask, gate=gate)``.

    All of its attributes can be given to ``app.task``. A shed of another gate, asked in the body, has the
    same consequence; the body then runs again from its start. A task that is called like a function is
    admitted, too, and raises the Shed.

    Attributes:
        gate: The gate; None for none.
        gate_priority: The priority, where the message names none; None leaves it to the gate's default. Or a
            Classifier, whose rules may name "task" (the task's name), "routing_key" (the queue, unless it was
            sent through an exchange of your own) and "header.NAME" (one of the message's that is a text). Or
            Gates, whose file has such rules.
        gate_weight: How much of the limit a task takes.
        priority_header: The header of a message that names its priority, as in
            ``task.apply_async(headers={"tidegate-priority": "sheddable"})``; None to believe none. What is no
            priority counts as "sheddable".
        on_shed: "retry": run again, not before the Shed's ``retry_after``, a second at least, twice as long
            with each retry; ``max_retries`` of the task holds (Celery's default is 3, None is without end),
            and after the last one, or where no retry can succeed, the task fails with the Shed. "reject":
            give the message to the broker's dead letters, which needs ``acks_late``. "ignore": forget it.

    Raises:
        ConfigError: From ``app.task`` when it makes the task: an attribute breaks its rule.
        TypeError: Likewise: `gate` is no Gate.
    """

    gate: ClassVar[Gate | None] = None
    gate_priority: ClassVar[Priority | str | Classifier | Gates | None] = None
    gate_weight: ClassVar[int] = 1
    priority_header: ClassVar[str | None] = PRIORITY_HEADER
    on_shed: ClassVar[OnShed] = "retry"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.gate is not None:
            check_gate(cls.gate)
        if isinstance(getattr(cls, "priority", None), str):
            raise ConfigError(
                f"priority is the broker's and a number, got {cls.priority!r}: Tidegate's is gate_priority"
            )
        _decider(cls.gate_priority)
        if cls.on_shed not in get_args(OnShed):
            raise ConfigError(f"on_shed must be 'retry', 'reject' or 'ignore', got {cls.on_shed!r}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the body, as the worker or a caller asks."""
        by_caller = self.request.called_directly
        # Celery's own method would hide the worker's request from the body, and with it the count of retries.
        run = partial(super().__call__ if by_caller else self.run, *args, **kwargs)
        try:
            return self._admitted(run)
        except Exception as error:
            shed = shed_in(error)
            if shed is None or by_caller:
                raise
            self._put_off(shed)

    def _admitted(self, run: Callable[[], Any]) -> Any:
        priority = self._priority()
        if self.gate is None:
            with use_priority(priority) if priority else nullcontext():
                return run()
        hold = joined(self.gate) or Hold.enter(self.gate, priority=priority, weight=self.gate_weight)
        with Entry(hold, priority).step():
            try:
                result = run()
            except BaseException as error:
                _leave(hold, error)
                raise
        hold.leave()
        return result

    def _priority(self) -> Priority | None:
        named = _headers(self).get(self.priority_header) if self.priority_header else None
        if named is not None:
            return sent_priority(named if isinstance(named, str) else "")
        return _decider(self.gate_priority)(self)

    def _put_off(self, shed: Shed) -> NoReturn:
        if self.on_shed == "ignore":
            raise Ignore(str(shed)) from shed
        if self.on_shed == "reject":
            raise Reject(shed, requeue=False) from shed  # back in the queue it would be here again at once
        if _hopeless(shed):
            raise shed
        raise self.retry(exc=shed, countdown=countdown(shed, self.request.retries))


def _headers(task: GatedTask) -> dict[str, Any]:
    return task.request.headers or {}


def _header(task: GatedTask, wanted: str) -> str | None:
    found = (value for name, value in _headers(task).items() if name.lower() == wanted)
    return next((value for value in found if isinstance(value, str)), None)


def _routing_key(task: GatedTask) -> str | None:
    delivery = task.request.delivery_info
    return delivery.get("routing_key") if delivery else None


_OF_A_TASK: dict[str, Callable[[GatedTask], str | None]] = {
    "task": lambda task: task.name,
    "routing_key": _routing_key,
}


def _decider(source: Priority | str | Classifier | Gates | None) -> Callable[[GatedTask], Priority | None]:
    if isinstance(source, Classifier | Gates):
        return classified(source, _OF_A_TASK, _header)
    fixed = None if source is None else priority_from(source)
    return lambda _task: fixed


def countdown(shed: Shed, retries: int) -> float:
    """Seconds until the next try, jittered upwards, so that tasks shed together do not return together."""
    wait = _SHORTEST if _is_closed(shed) else max(_SHORTEST, shed.retry_after or 0)
    return min(wait * 2.0 ** min(retries, _DOUBLINGS), _LONGEST) * uniform(1.0, 1.5)  # noqa: S311 - no secret


def _hopeless(shed: Shed) -> bool:
    return shed.retry_after == inf and not _is_closed(shed)


def _is_closed(shed: Shed) -> bool:
    # This worker is about to end: another one may have room at once.
    return shed.reason is Reason.CLOSED


def _leave(hold: Hold, error: BaseException) -> None:
    if isinstance(error, Retry):
        error = error.exc or error  # what the body retries for
    if isinstance(error, SoftTimeLimitExceeded):
        hold.leave(Outcome.OVERLOAD)
    else:
        hold.end(shed_in(error) or error)
