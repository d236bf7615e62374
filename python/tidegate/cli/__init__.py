"""The `tidegate` command.

Each subcommand is one module with `SUMMARY`, `DESCRIPTION`, `USAGE`, `configure(parser)` and
`run(args, parser)`. The last returns the exit code: 0 holds, 1 does not hold (or a bad file), 2 usage; 130 is
interrupted, 141 that nobody reads the output any more.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tidegate import __version__
from tidegate.cli import capacity, check, demo, simulate

_COMMANDS = {"capacity": capacity, "check": check, "demo": demo, "simulate": simulate}
_USAGE = 2
_INTERRUPTED = 130
_PIPE_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    top = argparse.ArgumentParser(
        prog="tidegate", description="A load shedder: counts what is inside and turns the rest away at once."
    )
    top.add_argument("--version", action="version", version=f"tidegate {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    parsers: dict[str, argparse.ArgumentParser] = {}
    for name, module in _COMMANDS.items():
        parsers[name] = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            # All options in every usage error would hide what the error is.
            usage=f"tidegate {name} {module.USAGE}",
        )
        module.configure(parsers[name])
    try:
        args = top.parse_args(argv)
        if args.command is None:
            top.print_help(sys.stderr)
            print("\ntidegate: error: name a command", file=sys.stderr)
            return _USAGE
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
