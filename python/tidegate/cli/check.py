"""`tidegate check`: explains a configuration file, or says everything that is wrong with it."""

from __future__ import annotations

import argparse
import os
import sys

from tidegate import ConfigError, load

SUMMARY = "explain a configuration file in words, or say all that is wrong with it"
USAGE = "[-h] FILE"
DESCRIPTION = (
    "Reads a configuration file as tidegate.load does and says in words what its gates and rules do. Lines "
    "that begin with 'warning' are worth a second look. A file that cannot be used is exit code 1, with one "
    "problem a line on standard error."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE", help="the file, in TOML")


def run(args: argparse.Namespace, _parser: argparse.ArgumentParser) -> int:
    """Explain the file and return the exit code."""
    os.environ.pop("TIDEGATE_METRICS_DIR", None)  # a look at a file publishes nothing
    try:
        gates = load(args.file)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(
            errors="backslashreplace"
        )  # names are any text, which a terminal may not be able to write
    print(gates.explain(), end="")
    return 0
