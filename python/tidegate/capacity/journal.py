"""What was measured, step by step, in a file of JSON lines: an interrupted run goes on from there.

The first line says what is tested and how; a run goes on only if it asks for the same. Each other line is a
step and what came of it. The search is deterministic, so steps that were measured are given to it again in
order, and it asks for the next one as if it had never been interrupted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO, cast

from tidegate.capacity.analysis import Step
from tidegate.capacity.generator import Counts, Played

_FORMAT = 1


class JournalError(Exception):
    """A journal that cannot be gone on with."""


class Journal:
    """A run's measurements, in memory and, if there is a file, in that.

    Args:
        run: What is tested and how, as JSON.
        file: Where each step is written as it ends. None: nowhere.
        measured: What is there already, in order.
    """

    def __init__(
        self,
        run: Mapping[str, object],
        file: TextIO | None = None,
        measured: list[dict[str, Any]] | None = None,
    ) -> None:
        self._file = file
        self._measured = measured or []
        self.replayed = 0
        self.fault: str | None = None
        """Why the file does not hold all that was measured, if so."""
        if measured is None:
            self._write({"format": _FORMAT, "run": run})

    @classmethod
    def resume(cls, path: Path, run: Mapping[str, object]) -> Journal:
        """Go on with the run in a file.

        Raises:
            JournalError: It is none, or one of another run.
        """
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise JournalError(f"cannot read {path}: {error}") from error
        # What has no end was being written when the run ended.
        whole = text[: text.rfind("\n") + 1]
        try:
            first, *measured = [json.loads(line) for line in whole.splitlines()]
            known = first["run"] if first["format"] == _FORMAT else None
            for line in measured:
                Step(**line["step"])
                played_from(line["played"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise JournalError(f"{path} is no journal of a capacity test") from error
        if known is None:
            raise JournalError(f"{path} is a journal of another version")
        asked = json.loads(json.dumps(run))
        if known != asked:
            raise JournalError(f"{path} is of another run: {difference(known, asked)}")
        file = path.open("r+", encoding="utf-8")
        file.seek(len(whole.encode()))
        file.truncate()
        return cls(run, file, measured)

    def recorded(self, step: Step) -> Played | None:
        """What came of a step that was measured before; None if it is to be measured now.

        Raises:
            JournalError: Another step comes next in the file.
        """
        if self.replayed == len(self._measured):
            return None
        line = self._measured[self.replayed]
        if line["step"] != json.loads(json.dumps(asdict(step))):
            raise JournalError(
                f"line {self.replayed + 2} of the journal is another step than the one that comes next: it "
                "was written by another version, or changed by hand; begin anew without --resume"
            )
        self.replayed += 1
        return played_from(line["played"])

    def record(self, step: Step, played: Played) -> None:
        """Write down what came of a step."""
        line = {"step": asdict(step), "played": asdict(played)}
        self._measured.append(line)
        self.replayed += 1
        try:
            self._write(line)
        except OSError as error:
            # What was measured is worth more than its record: the run goes on.
            self.fault = error.strerror or str(error)
            self.close()

    def _write(self, line: object) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # of what could not be written: said already
                file.close()


def played_from(fields: dict[str, Any]) -> Played:
    """The outcome of a step, from its JSON.

    Raises:
        ValueError: It is none; also AttributeError, KeyError and TypeError.
    """
    counts: dict[str, Any] = fields["counts"]
    rest: dict[str, Any] = {**fields, "counts": Counts(**counts)}
    played = Played(**rest)
    whole = [*counts.values(), played.most_in_flight, *played.failures.values()]
    if not all(type(value) is int and 0 <= value < 2**63 for value in whole):
        raise ValueError("a count is none")
    numbers = [played.seconds, played.in_flight, played.lag, played.busy, *played.latencies]
    if not all(type(value) in (int, float) and math.isfinite(value) for value in numbers):
        raise ValueError("a number is none")
    if min(played.seconds, played.in_flight, *played.latencies) < 0 or not played.seconds:
        raise ValueError("a time is none")
    if type(played.stopped) not in (str, type(None)) or type(played.capped) is not bool:
        raise ValueError("its end is none")
    return played


def difference(known: Any, asked: Any, name: str = "") -> str:
    """In words, the first thing in which two runs differ."""
    if isinstance(known, dict) and isinstance(asked, dict):
        here, there = cast("dict[str, Any]", known), cast("dict[str, Any]", asked)
        for key in {**here, **there}:
            if here.get(key) != there.get(key):
                return difference(here.get(key), there.get(key), f"{name}.{key}" if name else key)
    return f"{name} is {json.dumps(known)} there, and {json.dumps(asked)} is asked for"
