"""A demo's JSON, read strictly: what it measured, and what has to be inferred of how."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from tidegate.demo import capacity
from tidegate.demo.capacity import Level
from tidegate.demo.report import Essential, Row

_T = TypeVar("_T")

# Beyond it, a value is a slip.
_MOST = 1_000_000

ARRIVALS = ("trace", "poisson", "file")


class LikeError(Exception):
    """A demo's JSON that cannot be used: which key, and which rule it breaks."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What a demo measured, and how it was set."""

    database: str
    seed: int
    timeout: float
    seconds: float
    arrivals: str
    limit: int
    workers: int
    best_per_s: float
    service_ms: float
    curve: Sequence[Level]
    reference: float
    """Tidegate's good answers against those of the bare database, measured in turns."""
    reference_load: float
    valid: bool
    verdict: str
    rows: Sequence[Row]
    inferred: Sequence[str]
    """What the file does not say, and what was taken for it: a sentence each."""


def read(text: str) -> Demo:
    """The demo whose JSON this is.

    Args:
        text: As `tidegate demo --json` writes it.

    Raises:
        LikeError: It is no demo's JSON, or a value breaks a rule.
    """
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise LikeError(f"no JSON: {error}") from error
    except RecursionError as error:
        raise LikeError("no demo's JSON: nested too deeply") from error
    return _demo(_Table("", _mapping("the file", value)))


def _demo(root: _Table) -> Demo:
    curve = _curve(root)
    rows = [_row(table) for table in root.tables("loads")]
    best_per_s = root.positive("best_per_s")
    inferred: list[str] = []
    if (seconds := root.optional("seconds", _Table.positive)) is None:
        seconds = _seconds(rows, best_per_s)
        inferred.append(
            f"The file does not say for how long users came; by what was offered it was {seconds:.3g} s."
        )
    if (arrivals := root.optional("arrivals", _Table.text)) is None:
        arrivals = "trace"
        inferred.append("The file does not say when users came; the shipped trace is taken.")
    elif arrivals not in ARRIVALS:
        raise LikeError(f"arrivals: must be one of {', '.join(ARRIVALS)}, got {arrivals!r}")
    elif arrivals == "file":
        inferred.append(
            "The demo followed a trace of its own, which the file does not hold; the shipped one is taken."
        )
    if (workers := root.optional("workers", _Table.count)) is None:
        workers = capacity.best_workers(curve)
    reference = root.table("reference")
    return Demo(
        database=root.text("database"),
        seed=root.whole("seed"),
        timeout=root.positive("timeout"),
        seconds=seconds,
        arrivals=arrivals,
        limit=root.count("limit"),
        workers=workers,
        best_per_s=best_per_s,
        service_ms=root.positive("service_ms"),
        curve=curve,
        reference=reference.not_negative("goodput_ratio"),
        reference_load=reference.positive("load"),
        valid=root.boolean("valid"),
        verdict=root.text("verdict"),
        rows=rows,
        inferred=inferred,
    )


def _curve(root: _Table) -> list[Level]:
    curve = [Level(table.count("workers"), table.positive("per_s")) for table in root.tables("curve")]
    workers = [level.workers for level in curve]
    if len(curve) < 2 or workers != sorted(set(workers)):
        raise LikeError(
            "curve: must have two numbers of workers at least, each larger than the one before, "
            f"got {_shown(workers)}"
        )
    return curve


def _row(table: _Table) -> Row:
    essential = table.table("essential")
    row = Row(
        load=table.positive("load"),
        arm=table.text("arm"),
        offered=table.not_negative_whole("offered"),
        good=table.not_negative_whole("good"),
        late=table.not_negative_whole("late"),
        shed=table.not_negative_whole("shed"),
        error_rate=table.optional("error_rate", _Table.not_negative),
        goodput_ratio=table.not_negative("goodput_ratio"),
        shed_ms_p50=None,
        shed_ms_p99=None,
        p50_ms=table.optional("p50_ms", _Table.not_negative),
        p99_ms=table.optional("p99_ms", _Table.not_negative),
        essential=Essential(
            offered=essential.not_negative_whole("offered"), good=essential.not_negative_whole("good")
        ),
    )
    if row.good + row.late + row.shed != row.offered:
        raise LikeError(
            f"{table.key}: good + late + shed must be offered, got "
            f"{row.good} + {row.late} + {row.shed} and {row.offered}"
        )
    if row.essential.good > row.essential.offered or row.essential.offered > row.offered:
        raise LikeError(
            f"{table.key}.essential: good must be at most offered, and that at most offered in all, got "
            f"{row.essential.good}, {row.essential.offered} and {row.offered}"
        )
    return row


def _seconds(rows: Sequence[Row], best_per_s: float) -> float:
    """From a row where nobody tried again, which is where nobody waited in vain."""
    first = [row for row in rows if row.late == 0 and row.offered]
    if not first:
        raise LikeError("seconds: is missing, and in each of loads some were late, so it cannot be inferred")
    most = max(first, key=lambda row: row.offered)
    return most.offered / (most.load * best_per_s)


def _mapping(key: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise LikeError(f"{key}: must be an object, got {_shown(value)}")
    return cast("dict[str, object]", value)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Table:
    """An object of the file, and the key that it belongs to."""

    def __init__(self, key: str, entries: Mapping[str, object]) -> None:
        self.key = key
        self._entries = entries

    def optional(self, key: str, read: Callable[[_Table, str], _T]) -> _T | None:
        """What `read` finds at `key`; None where there is nothing, or null."""
        return None if self._entries.get(key) is None else read(self, key)

    def text(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise self._broken(key, "a string")
        return value

    def boolean(self, key: str) -> bool:
        value = self._get(key)
        if not isinstance(value, bool):
            raise self._broken(key, "true or false")
        return value

    def whole(self, key: str) -> int:
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._broken(key, "a whole number")
        return value

    def not_negative_whole(self, key: str) -> int:
        value = self.whole(key)
        if not 0 <= value <= _MOST:
            raise self._broken(key, f"a whole number from 0 to {_MOST}")
        return value

    def count(self, key: str) -> int:
        value = self.whole(key)
        if not 1 <= value <= _MOST:
            raise self._broken(key, f"a whole number from 1 to {_MOST}")
        return value

    def not_negative(self, key: str) -> float:
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
            raise self._broken(key, f"a number from 0 to {_MOST}")
        return float(value)

    def positive(self, key: str) -> float:
        value = self.not_negative(key)
        if value < 1 / _MOST:
            raise self._broken(key, f"a number above 0 (from {1 / _MOST} to {_MOST})")
        return value

    def table(self, key: str) -> _Table:
        return _Table(self._named(key), _mapping(self._named(key), self._get(key)))

    def tables(self, key: str) -> list[_Table]:
        value = self._get(key)
        if not isinstance(value, list) or not value:
            raise self._broken(key, "a list with one object at least")
        items = cast("list[object]", value)
        return [
            _Table(name, _mapping(name, item))
            for name, item in ((f"{self._named(key)}[{at}]", item) for at, item in enumerate(items, 1))
        ]

    def _get(self, key: str) -> object:
        if key not in self._entries:
            raise LikeError(f"{self._named(key)}: is missing")
        return self._entries[key]

    def _named(self, key: str) -> str:
        return f"{self.key}.{key}" if self.key else key

    def _broken(self, key: str, rule: str) -> LikeError:
        return LikeError(f"{self._named(key)}: must be {rule}, got {_shown(self._entries[key])}")
