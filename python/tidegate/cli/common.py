"""What several commands need: where their results go, what they need installed, how they are ended."""

from __future__ import annotations

import argparse
import io
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
    """Where a file goes, tried before the run, so that a bad path costs no minutes.

    It is written after the run: one that comes to nothing leaves what was there before.
    """
    if name is None:
        yield None
        return
    path = None if name == "-" else Path(name)
    with _writing(name, parser):
        new = path is not None and not path.exists()
        if path is not None:
            path.open("a").close()
    text = io.StringIO()
    try:
        yield text
    finally:
        if path is not None and new and text.tell() == 0:
            path.unlink(missing_ok=True)
    if text.tell() == 0:
        return
    with _writing(name, parser):
        if path is not None:
            path.write_text(text.getvalue(), encoding="utf-8")
        else:
            sys.stdout.write(text.getvalue())
            sys.stdout.flush()


@contextmanager
def _writing(name: str, parser: argparse.ArgumentParser) -> Generator[None]:
    try:
        yield
    except BrokenPipeError:  # whoever reads it has enough: no fault
        raise
    except OSError as error:
        parser.error(f"cannot write {'standard output' if name == '-' else name}: {error.strerror}")


def refuse_one_file(
    args: argparse.Namespace, parser: argparse.ArgumentParser, source: str | Path | None = None
) -> None:
    """End with a usage error where figures and page would go to the same place, or to what is read."""
    if _same(args.html, args.json):
        parser.error("--json and --html need different files")
    for option, name in (("--json", args.json), ("--html", args.html)):
        if name != "-" and _same(name, source):
            parser.error(f"{option} {name} would overwrite what is read")


def _same(one: str | Path | None, other: str | Path | None) -> bool:
    if one is None or other is None:
        return False
    return Path(one).resolve() == Path(other).resolve()


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


def seed(text: str) -> int:
    """A seed, as an argument."""
    if not (text.isascii() and text.isdecimal() and int(text) < 2**64):
        raise argparse.ArgumentTypeError(f"the seed must be a whole number from 0 to 2^64 - 1, got {text!r}")
    return int(text)


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
