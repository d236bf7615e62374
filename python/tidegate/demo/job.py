"""What the parent tells its child processes to do: one line of JSON each."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any, Self

from tidegate.demo.database import Address

_NICENESS = 5


@dataclass(frozen=True, slots=True)
class Job:
    """Work on the messages at `database`, searching the first `depth` of them."""

    database: Address
    depth: int

    def line(self) -> bytes:
        """As the child reads it."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """The job that `line` was made from."""
        fields: dict[str, Any] = json.loads(line)
        fields["database"] = Address(**fields["database"])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class ServeJob(Job):
    """Serve requests with `workers` threads behind the door of `arm`, set to `limit`."""

    arm: str
    workers: int
    limit: int


def make_way() -> None:
    """Let this thread, which works for the database, stand back where a processor is short.

    In life the database is on another machine than the users, and than the event loop that refuses them. Here
    they share this one with up to forty threads that never rest, and without this the load generator was
    measured to start one request in a hundred 40 to 200 ms late. (Linux counts niceness by thread. Where a
    whole process has one, the whole process stands back.)
    """
    os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
