"""Log lines for what happens at a gate, through the standard library's ``logging``.

A message is ``key=value`` pairs, and the same pairs are attributes of the log record, for formatters that
write JSON. Sheds are at most one line an interval, however many there are: each line says with
``suppressed`` how many were left out since the line before. So are the moves of a controller.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
from typing import TYPE_CHECKING, cast

from tidegate._names import EventKind
from tidegate._native import Throttle

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate._native import Event, Gate

__all__ = ["log_events"]


def log_events(
    gate: Gate, *, logger: logging.Logger | None = None, interval: float = 1.0
) -> Callable[[], None]:
    """Log what happens at a gate.

    Sheds are warnings, at most one an interval; changes of the limit, the thresholds and dry run, closing and
    draining are all logged, as information, and so is what signals do: overload as a warning. Sheds that
    were suppressed are told by the gate's next line of any kind (which then is a warning), or when logging
    ends: by the call of what this returns, or at the exit of the interpreter. No thread waits for that.

    What a controller does to the limit is at most one line an interval, too, since with much traffic it may
    move many times a second: ``unlogged`` is how many of its moves have no line, told with the next one and
    when logging ends.

    Args:
        gate: The gate.
        logger: Where to; the logger "tidegate" if not given.
        interval: Seconds between two lines about sheds, and between two about moves of a controller, on the
            gate's clock; with 0 each is a line.

    Returns:
        What ends the logging when called.

    Raises:
        ConfigError: The interval is negative or no number of seconds.
    """
    logger = logging.getLogger("tidegate") if logger is None else logger
    lines = _Lines(gate.name, logger, Throttle(interval), Throttle(interval))
    unsubscribe = gate.subscribe(lines.write)
    _all_lines.add(lines)

    def end() -> None:
        unsubscribe()
        _all_lines.discard(lines)
        lines.write_suppressed()

    return end


# The causes of its moves.
_CONTROLLERS = frozenset({"raise", "lower", "lost"})


class _Lines:
    """The lines of one gate."""

    def __init__(self, gate: str, logger: logging.Logger, throttle: Throttle, moves: Throttle) -> None:
        self._gate = gate
        self._logger = logger
        self._throttle = throttle
        self._moves = moves

    def write(self, event: Event) -> None:
        if event.kind is EventKind.SHED:
            suppressed = self._throttle.let_through(event, self._warnings_are_read())
            if suppressed is not None:
                self._log(logging.WARNING, event.kind, {**event.fields, "suppressed": suppressed})
            return
        fields = event.fields
        if event.kind is EventKind.LIMIT and event.cause in _CONTROLLERS:
            unlogged = self._moves.let_through(event, self._logger.isEnabledFor(logging.INFO))
            if unlogged is None:
                return
            fields["unlogged"] = unlogged
        level = logging.WARNING if event.overloaded else logging.INFO
        if suppressed := self._take_suppressed():
            fields["suppressed"] = suppressed
            level = logging.WARNING
        self._log(level, event.kind, fields)

    def write_suppressed(self) -> None:
        if suppressed := self._take_suppressed():
            self._log(logging.WARNING, EventKind.SHED, {"suppressed": suppressed})
        if self._logger.isEnabledFor(logging.INFO) and (unlogged := self._moves.take_suppressed()):
            self._log(logging.INFO, EventKind.LIMIT, {"unlogged": unlogged})

    def forget_suppressed(self) -> None:
        self._throttle.take_suppressed()
        self._moves.take_suppressed()

    def _warnings_are_read(self) -> bool:
        return self._logger.isEnabledFor(logging.WARNING)

    def _take_suppressed(self) -> int:
        """Left where it is while nobody would read of it."""
        return self._throttle.take_suppressed() if self._warnings_are_read() else 0

    def _log(self, level: int, kind: EventKind, fields: dict[str, object]) -> None:
        if self._logger.isEnabledFor(level):
            extra = {"gate": self._gate, "event": kind.value, **fields}
            self._logger.log(level, "%s", _pairs(extra), extra=extra)


def _pairs(fields: dict[str, object]) -> str:
    return " ".join(f"{key}={_value(value)}" for key, value in fields.items())


def _value(value: object) -> str:
    """As it is where that is one word; otherwise quoted, so that no value can pretend to be a line."""
    if isinstance(value, dict):
        thresholds = cast("dict[str, int]", value)
        value = ",".join(f"{priority}:{weight}" for priority, weight in thresholds.items())
    elif isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, float):
        value = f"{value:.6g}"
    text = str(value)
    return text if text.isprintable() and text and not set(text) & set(' "=') else json.dumps(text)


# What is still to be told at exit, also of gates that are gone, and what a child must not tell once more.
_all_lines: set[_Lines] = set()


def _at_exit() -> None:
    for lines in tuple(_all_lines):
        lines.write_suppressed()


def _in_child() -> None:
    for lines in tuple(_all_lines):
        lines.forget_suppressed()


atexit.register(_at_exit)  # runs before that of logging, which was registered earlier
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
