"""The `tidegate` command.

Each subcommand is one module with `SUMMARY`, `DESCRIPTION`, `configure(parser)` and `run(args, parser)`. The
last returns the exit code: 0 holds, 1 does not hold (or a bad file), 2 usage; 130 is interrupted, 141 that
nobody reads the output any more.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tidegate.cli import capacity, check, demo, simulate

_COMMANDS = {"capacity": capacity, "check": check, "demo": demo, "simulate": simulate}
_INTERRUPTED = 130
_PIPE_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    top = argparse.ArgumentParser(
        prog="tidegate", description="A load shedder: counts what is inside and turns the rest away at once."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers: dict[str, argparse.ArgumentParser] = {}
    for name, module in _COMMANDS.items():
        parsers[name] = commands.add_parser(name, help=module.SUMMARY, description=module.DESCRIPTION)
        module.configure(parsers[name])
    try:
        args = top.parse_args(argv)
        code: int = _COMMANDS[args.command].run(args, parsers[args.command])
        sys.stdout.flush()
    except SystemExit as stop:  # argparse's way out: help (0) or a usage error (2)
        return stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:
        print("tidegate: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # whoever read the output has enough
        # What is left of it is not to fail once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    return code
