"""How a limit that finds itself came to be what it is: one line asks a backend process, one answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate import Gate
    from tidegate.demo.child import Child

ASK = b"history"


@dataclass(frozen=True, slots=True)
class Change:
    """One move of the limit, but for those of experiments."""

    ago: float
    """How long ago, in seconds."""
    limit: int
    """From then on."""
    cause: str


@dataclass(frozen=True, slots=True)
class History:
    """What has become of a limit."""

    limit: int
    """Now."""
    in_flight: int
    changes: Sequence[Change]
    """The last of them, at most 64, oldest first."""


def answer(gate: Gate) -> bytes:
    """The line of a gate that has a controller."""
    report = gate.controller
    assert report is not None
    # Shorter than PIPE_BUF, to be written as a whole: at most 64 changes.
    changes = [(round(report.at - change.at, 3), change.limit, change.cause) for change in gate.limit_history]
    fields = (gate.limit, gate.in_flight, changes)
    return ASK + b" " + json.dumps(fields, separators=(",", ":")).encode()


async def ask(backend: Child) -> History:
    """Ask for the history. Answers to users who do not wait any more are passed over."""
    backend.send(ASK)
    line = b""
    while not line.startswith(ASK):
        line = await backend.receive()
    fields: Any = json.loads(line.removeprefix(ASK))
    limit, in_flight, changes = fields
    return History(limit, in_flight, [Change(*change) for change in changes])
