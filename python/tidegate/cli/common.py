"""What several commands need: where their results go, what they need installed, how they are ended."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TextIO


@contextmanager
def target(name: str | None, parser: argparse.ArgumentParser) -> Generator[TextIO | None]:
    """Where a file goes, opened before the run, so that a bad path costs no minutes."""
    if name is None:
        yield None
    elif name == "-":
        yield sys.stdout
    else:
        try:
            file = Path(name).open("w", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            parser.error(f"cannot write {name}: {error.strerror}")
        with file:
            yield file


def refuse_one_file(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """End with a usage error where figures and page would go to the same place."""
    if args.html is not None and args.html == args.json:
        parser.error("--json and --html need different files")


def write_json(file: TextIO, figures: object) -> None:
    """Write figures for programs, in a form that people can read too."""
    json.dump(figures, file, indent=2)
    file.write("\n")


def importable(name: str) -> bool:
    """Whether a module can be used."""
    try:
        import_module(name)
    except ImportError:  # also psycopg's, where it finds no library of PostgreSQL's
        return False
    return True


@contextmanager
def terminable() -> Generator[None]:
    """A plain `kill` ends a run like Ctrl-C: children and files are cleaned up."""

    def interrupt(_signal: int, _frame: object) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
