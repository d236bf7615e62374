"""`tidegate capacity`: the command line of the capacity test."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tidegate.cli.common import importable, refuse_one_file, seed, target, terminable, write_json

if TYPE_CHECKING:
    from tidegate.cli.capacity_run import Outcome


# What a simulated run does not heed is refused, not passed over.
_OF_REAL = (
    *(
        "data",
        "stages",
        "stage",
        "cell",
        "warm_up",
        "start_rate",
        "overload",
        "article",
        "no_bisect",
        "no_proof",
    ),
    *("arrivals", "trace", "max_rate", "max_in_flight", "max_limit", "max_lag", "preview", "log", "resume"),
)
_OF_BOTH = ("timeout", "accept", "essential", "no_before", "seed", "gate")


class _Options(Protocol):
    """Where options are added to."""

    def add_argument(self, *names: str, **more: Any) -> argparse.Action:
        """Add one."""
        ...


SUMMARY = "find the limit of a real target, and prove it"
USAGE = "[-h] [OPTION ...] TARGET, or --simulate"
DESCRIPTION = """
Find out how much a target takes before it breaks, how many at a time it serves best, and prove that a gate
with that limit holds when more come. TARGET is a URL (http://..., https://...), a database (postgresql://...,
sqlite:///FILE, with --sql) or a Python function (module:function). Says what it is going to do and asks
before it sends anything. Exit code 0: a limit was found and proven; 1: not, or capacity fell below --ci; 2:
usage; 130: interrupted.
"""
ARTICLE_STAGES = "0,10,20,40,80,150/min"
ARTICLE_STAGE = "15min"
ARTICLE_TIMEOUT = "180s"
_INTERRUPTED = 130

# Of a simulated system: the article's, per minute.
SIMULATED = {"lambda": 3.0, "sigma": 0.02, "kappa": 5.55e-4, "service": "lognormal", "cv": 0.5}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegate capacity`."""
    parser.add_argument("target", nargs="?", metavar="TARGET", help="what to test")
    _configure_target(parser.add_argument_group("the target"))
    _configure_search(parser.add_argument_group("the search; a bare number is seconds, or a rate a minute"))
    _configure_safety(parser.add_argument_group("safety"))
    _configure_results(parser.add_argument_group("results"))
    _configure_simulation(parser.add_argument_group("a simulated target"))


def _configure_target(group: _Options) -> None:
    add = group.add_argument
    add("--method", metavar="GET", help="of a URL: the method (GET, or POST with --body)")
    add("--header", action="append", default=[], metavar="'NAME: VALUE'", help="of a URL; again for more")
    add("--body", metavar="TEXT|@FILE", help="of a URL; $n is the request's number, $column from --data")
    add("--status", metavar="200-299", help="of a URL: the statuses of good answers (200-299)")
    add("--contains", metavar="TEXT", help="of a URL: what the body of a good answer contains")
    add("--sql", metavar="TEXT|@FILE", help="of a database: the statement")
    add("--data", type=Path, metavar="FILE.csv", help="rows with what differs from request to request")


def _configure_search(group: _Options) -> None:
    from tidegate.capacity import units

    add = group.add_argument
    duration, rate = _checked(units.seconds), _checked(units.per_second)
    add("--timeout", type=duration, metavar="10s", help="how long an answer may take (10s; simulated 180s)")
    add("--stages", type=_checked(units.rates), metavar="10,20,40/min", help="rates for the ramp, in turn")
    add("--no-bisect", action="store_true", help="with --stages: these and no others")
    add("--stage", type=duration, metavar="15min", help="the length of each (4 timeouts)")
    add("--article", action="store_true", help=f"--stages {ARTICLE_STAGES} --stage {ARTICLE_STAGE} and 180s")
    add("--cell", type=duration, metavar="15min", help="how long each limit is measured (4 timeouts)")
    add("--warm-up", type=duration, metavar="S", help="before each step, not counted (a timeout)")
    add("--start-rate", type=rate, metavar="RATE", help="where the ramp begins")
    add(
        "--overload", type=_above_one, metavar="1.6", help="the proof's, as a multiple of what broke it (1.6)"
    )
    add("--no-before", action="store_true", help="leave out the overload without a gate")
    add("--no-proof", action="store_true", help="leave out the overload behind the gate")
    add("--accept", type=rate, metavar="RATE", help="prove that this much is sustained")
    add("--essential", type=_share, metavar="SHARE", help="find thresholds that protect this share")
    add(
        "--arrivals",
        choices=("poisson", "even", "trace"),
        default="poisson",
        help="pure chance (default), evenly spaced, or from --trace",
    )
    add("--trace", type=Path, metavar="FILE", help="arrival times in the first column of a CSV file")
    add("--seed", type=seed, default=1, metavar="N", help="of everything left to chance (1)")


def _configure_safety(group: _Options) -> None:
    from tidegate.capacity import units

    add = group.add_argument
    rate, duration = _checked(units.per_second), _checked(units.seconds)
    add(
        "--max-rate",
        type=rate,
        default="200/s",
        metavar="RATE",
        help="never send it more (200/s)",
    )
    add("--max-in-flight", type=_whole, default=256, metavar="N", help="never have more in flight (256)")
    add("--max-limit", type=_whole, metavar="N", help="the largest gate to try (--max-in-flight)")
    add("--max-lag", type=duration, default="20ms", metavar="20ms", help="later than this is no load (20ms)")
    add("--preview", action="store_true", help="say what would be sent, and end")
    add("--yes", action="store_true", help="do not ask")


def _configure_results(group: _Options) -> None:
    add = group.add_argument
    add("--gate", default="db", metavar="NAME", help="the gate's name in the configuration (db)")
    add(
        "--toml",
        metavar="FILE",
        help="write the recommendation there as configuration; - for standard output",
    )
    add("--json", metavar="FILE", help="write the figures there too; - for standard output")
    add("--html", metavar="FILE", help="write a page with charts there too; it needs no network")
    add("--png", type=Path, metavar="FILE", help="draw the curve there too; needs matplotlib")
    add("--log", type=Path, metavar="FILE.jsonl", help="write each step down as it ends")
    add("--resume", type=Path, metavar="FILE.jsonl", help="go on with the run that was written there")
    add(
        "--ci",
        type=Path,
        metavar="BASELINE.json",
        help="exit code 1 if capacity fell below an earlier --json",
    )


def _configure_simulation(group: _Options) -> None:
    add = group.add_argument
    add("--simulate", action="store_true", help="no real target: the article's system in virtual time")
    add("--lambda", type=_positive, metavar="3", help="answers a minute of one alone (3)")
    add("--sigma", type=_not_negative, metavar="0.02", help="the share that must wait for each other (0.02)")
    add("--kappa", type=_not_negative, metavar="5.55e-4", help="what each pair costs (5.55e-4)")
    add("--service", metavar="lognormal", help="the distribution of sizes (lognormal)")
    add("--cv", type=_not_negative, metavar="0.5", help="their coefficient of variation (0.5)")


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Run what is asked for; returns the exit code."""
    _refuse_what_does_not_go_together(args, parser)
    if (lacking := _lacking(args)) is not None:
        print(f"tidegate capacity needs {lacking}", file=sys.stderr)
        return 2
    from tidegate.cli import capacity_run as real

    baseline = real.baseline(args, parser)
    if args.png is not None and (fault := real.undrawable(args.png)) is not None:
        parser.error(fault)
    with (
        target(args.json, parser) as json_file,
        target(args.html, parser) as html_file,
        target(args.toml, parser) as toml_file,
        terminable(),
    ):
        run = real.simulated if args.simulate else real.tested
        outcome = run(args, parser, baseline)
        if outcome is None:
            return 0
        if json_file is not None:
            write_json(json_file, outcome.figures)
        if html_file is not None:
            html_file.write(outcome.page(_command(args)))
        if toml_file is not None:
            toml_file.write(outcome.toml)
    # Last and on its own: a picture that cannot be drawn takes nothing else with it.
    if args.png is not None:
        try:
            outcome.picture(args.png)
        except OSError as error:
            parser.error(f"cannot write {args.png}: {error.strerror}")
    _show(args, outcome)
    return _INTERRUPTED if outcome.interrupted else 0 if outcome.verdict.holds else 1


def _show(args: argparse.Namespace, outcome: Outcome) -> None:
    from rich.console import Console

    outcome.show(Console(stderr="-" in (args.json, args.html, args.toml)))


def _refuse_what_does_not_go_together(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if args.simulate == (args.target is not None):
        parser.error("name a target to test, or --simulate")
    kind = "simulate" if args.simulate else kind_of(args.target)
    if kind is None:
        parser.error(
            f"{args.target!r} is no target: give a URL (http://...), a database (postgresql://..., "
            "sqlite:///FILE) or a function (module:function)"
        )
    _only("url", kind, args, parser, "method", "header", "body", "status", "contains")
    _only("sql", kind, args, parser, "sql")
    _only("simulate", kind, args, parser, *SIMULATED)
    if kind == "sql" and args.sql is None:
        parser.error("a database needs a statement: --sql 'SELECT ...'")
    if args.simulate:
        for name in _OF_REAL:
            if getattr(args, name) != parser.get_default(name):
                parser.error(f"--{name.replace('_', '-')} does not go with --simulate")
    if args.article and (args.stages or args.stage):
        parser.error("--article is --stages and --stage already")
    if args.no_bisect and not (args.stages or args.article):
        parser.error("--no-bisect goes with --stages or --article")
    if args.start_rate is not None and (args.stages or args.article):
        parser.error("--start-rate does not go with stages, which say where to begin")
    if args.trace is not None and args.arrivals != "trace":
        parser.error("--trace goes with --arrivals trace")
    if args.log is not None and args.resume is not None:
        parser.error("--resume goes on writing where it reads: leave out --log")
    if not args.gate:
        parser.error("--gate must not be empty")
    _refuse_same_files(args, parser)


def _refuse_same_files(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    refuse_one_file(args, parser, args.data)
    seen: dict[object, str] = {}
    for name in ("json", "html", "toml", "png", "log", "resume", "ci", "data", "trace"):
        value = getattr(args, name)
        if value is None:
            continue
        place = str(value) if str(value) == "-" else Path(value).resolve()
        if place in seen and not (name == "trace" and seen[place] == "data"):
            parser.error(f"--{seen[place]} and --{name} need different files")
        seen[place] = name


def _only(
    wanted: str, kind: str, args: argparse.Namespace, parser: argparse.ArgumentParser, *names: str
) -> None:
    if kind == wanted:
        return
    for name in names:
        if getattr(args, name):
            goes = {"url": "a URL", "sql": "a database", "simulate": "--simulate"}[wanted]
            parser.error(f"--{name} goes with {goes}")


def kind_of(name: str) -> str | None:
    """What kind of target a name is of: "url", "sql", "function", or none."""
    scheme, there, rest = name.partition("://")
    if there:
        return {"http": "url", "https": "url", "postgresql": "sql", "postgres": "sql", "sqlite": "sql"}.get(
            scheme.lower() if rest else ""
        )
    module, colon, function = name.partition(":")
    names = (*module.split("."), *function.split("."))
    return "function" if colon and all(part.isidentifier() for part in names) else None


def _lacking(args: argparse.Namespace) -> str | None:
    """What has to be installed first, if anything."""
    if not importable("rich"):
        return 'rich: pip install "tidegate[cli]"'
    if args.png is not None and not importable("matplotlib"):
        return 'matplotlib to draw with: pip install "tidegate[capacity]"'
    name = args.target or ""
    if name.lower().startswith(("http://", "https://")) and not importable("httpx"):
        return 'httpx to send with: pip install "tidegate[capacity]"'
    if name.lower().startswith("postgres") and kind_of(name) == "sql" and not importable("psycopg"):
        return 'psycopg for PostgreSQL: pip install "tidegate[capacity]"'
    return None


def _command(args: argparse.Namespace) -> str:
    """The command that repeats the run, without what opens a door."""
    from tidegate.capacity.url import without_password
    from tidegate.report.origin import command_line

    repeated = argparse.Namespace(**vars(args))
    for name in ("target", "header", "toml", "png", "log", "resume", "yes", "preview", "ci"):
        delattr(repeated, name)
    if args.simulate:
        for name in set(vars(repeated)) - {"command", "simulate", *SIMULATED, *_OF_BOTH}:
            delattr(repeated, name)
    else:
        for name in SIMULATED:
            delattr(repeated, name)
    before = [] if args.target is None else [without_password(args.target)]
    for header in args.header:
        before += ["--header", f"{header.partition(':')[0]}: ..."]
    return command_line(repeated, *before)


# --- values ------------------------------------------------------------------------------------------


def _checked(read: Callable[[str], object]) -> Callable[[str], str]:
    """A text that can be read so; it stays as it was written, so that the command can be repeated."""

    def check(text: str) -> str:
        try:
            read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return text

    return check


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 100_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 100000")
    return int(text)


def _number(text: str, rule: str, holds: Callable[[float], bool]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and holds(value)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number {rule}")
    return value


def _positive(text: str) -> float:
    return _number(text, "above 0", lambda value: value > 0)


def _not_negative(text: str) -> float:
    return _number(text, "of 0 or more", lambda value: value >= 0)


def _above_one(text: str) -> float:
    return _number(text, "above 1", lambda value: value > 1)


def _share(text: str) -> float:
    return _number(text, "between 0 and 1", lambda value: 0 < value < 1)
