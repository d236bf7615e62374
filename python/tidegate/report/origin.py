"""Where the figures of a report come from."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self, cast

import tidegate

# A report is for showing around: nothing that opens a database belongs into it.
_SECRET = {"dsn": "URL"}
# Where the results went says nothing about them.
_RESULTS = ("json", "html")


@dataclass(frozen=True, slots=True)
class Origin:
    """What somebody needs to know to get the same figures again."""

    command: str
    facts: Sequence[tuple[str, str]]
    """Names and values: when, on what, with which versions."""

    @classmethod
    def here(cls, command: str) -> Self:
        """Of this process, on this machine, now."""
        cores = os.cpu_count()
        return cls(
            command,
            (
                (
                    "Machine",
                    f"{cores or 'unknown number of'} cores, {platform.system()} {platform.machine()}",
                ),
                ("Tidegate", tidegate.__version__),
                ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
                ("Made", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
            ),
        )


def command_line(args: argparse.Namespace, *arguments: str) -> str:
    """The command that repeats a run, with every option spelled out, also those that were left out.

    Args:
        args: As parsed: `command`, and the options in the order in which they were added.
        arguments: What stands before the options, such as a file to run.
    """
    options = {name: value for name, value in vars(args).items() if name not in ("command", *_RESULTS)}
    return shlex.join(["tidegate", args.command, *arguments, *_options(options)])


def _options(options: dict[str, object]) -> Iterator[str]:
    for name, value in options.items():
        if value is None or value is False:
            continue
        yield f"--{name.replace('_', '-')}"
        if value is not True:
            yield _SECRET.get(name) or _argument(value)


def _argument(value: object) -> str:
    match value:
        case tuple() | list():
            return ",".join(_argument(item) for item in cast("Sequence[object]", value))
        case float():
            return f"{value:.12g}"
        case _:
            return str(value)
