"""What the parent tells its child processes to do: one line of JSON each."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tidegate.demo.database import Address

_NICENESS = 15


@dataclass(frozen=True, slots=True)
class Job:
    """Work on the messages at `database`, searching the first `depth` of them."""

    database: Address
    depth: int

    def line(self) -> bytes:
        """As the child reads it, without the line's end."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """The job that `line` was made from."""
        fields: dict[str, Any] = json.loads(line)
        fields["database"] = Address(**fields["database"])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class ServeJob(Job):
    """Serve requests with `workers` threads behind the door of `arm`.

    The door that finds its limit is told how long users wait, in seconds; the others are set to `limit`.
    """

    arm: str
    workers: int
    limit: int
    timeout: float = 1.0


def make_way(process: int = 0) -> None:
    """Let what works for the database stand back where a processor is short.

    In life the database is on another machine than the users, and than the event loop that refuses them. Here
    they share this one with up to forty threads that never rest, and without this the load generator was
    measured to start one request in a hundred 40 to 200 ms late. (Linux counts niceness by thread. Where a
    whole process has one, the whole process stands back.)

    Args:
        process: Whose; by default the calling thread's.
    """
    os.setpriority(os.PRIO_PROCESS, process, _NICENESS)
    if process:
        # Each PostgreSQL backend is a session. Where Linux shares the processors out by session, a niceness
        # counts only within one, and a session's own is set here; one in 100 ms by those who are not root.
        with suppress(OSError):
            Path(f"/proc/{process}/autogroup").write_text(str(_NICENESS))
