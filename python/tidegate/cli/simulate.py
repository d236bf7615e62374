"""`tidegate simulate`: the command line of the simulator."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate import Priority
from tidegate._errors import ConfigError
from tidegate.cli.common import importable, refuse_one_file, target, terminable, write_json

if TYPE_CHECKING:
    from tidegate.report.origin import Origin
    from tidegate.report.page import Page

SUMMARY = "play a scenario through the real gate, in virtual time"
DESCRIPTION = """
Run a scenario from a TOML file: who comes, which gate they meet, what serves them and what they do then.
Or, with --oracle, compare what the gate sheds with what queueing theory says. Or, with --like, predict a
demo's figures from what the demo measured of the database alone. Exit code 0: it ran; 1: the file cannot be
used; 2: usage.
"""

_ORACLES = {
    "erlang-b": ("limit", "offered"),
    "degrading": ("rate", "limit", "lambda", "sigma", "kappa"),
    "thresholds": ("limit", "thresholds", "offered"),
}
_OF_ORACLES = ("limit", "offered", "rate", "lambda", "sigma", "kappa", "thresholds")
Number = TypeVar("Number", int, float)
_SERVICES = ("exponential", "deterministic", "lognormal", "hyperexponential")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegate simulate`."""
    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO.toml", help="what to run; - for standard input"
    )
    parser.add_argument("--seed", type=_seed, default=1, metavar="N", help="of everything left to chance (1)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too; - for standard output")
    parser.add_argument(
        "--html", metavar="FILE", help="write a page with charts there too; it needs no network"
    )
    parser.add_argument(
        "--like",
        type=Path,
        metavar="DEMO.json",
        help="what `tidegate demo --json` wrote, instead of a scenario",
    )
    parser.add_argument(
        "--scenarios",
        type=Path,
        metavar="FOLDER",
        help="leave the scenarios there that --like made of the demo",
    )
    oracle = parser.add_argument_group("against queueing theory, instead of a scenario")
    oracle.add_argument("--oracle", choices=tuple(_ORACLES), help="which system")
    oracle.add_argument("--limit", type=_whole, metavar="N", help="of the gate")
    oracle.add_argument(
        "--offered",
        type=_numbers,
        metavar="A",
        help="arrival rate times mean service; with thresholds four, the most important priority first",
    )
    oracle.add_argument(
        "--thresholds", type=_wholes, metavar="A,B,C,D", help="in whole weights, from the limit down"
    )
    oracle.add_argument("--rate", type=_number, metavar="R", help="arrivals a minute (degrading)")
    oracle.add_argument(
        "--lambda", type=_number, metavar="L", help="answers a minute of one alone (degrading)"
    )
    oracle.add_argument("--sigma", type=_number, metavar="S", help="slowdown by contention (degrading)")
    oracle.add_argument("--kappa", type=_number, metavar="K", help="slowdown by pairs (degrading)")
    oracle.add_argument("--service", choices=_SERVICES, help="how service times vary (exponential)")
    oracle.add_argument("--dry-run", action="store_true", help="count what would be shed, shed nothing")
    oracle.add_argument(
        "--bare", action="store_true", help="enter by `with gate:` rather than by permits (dry run)"
    )


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Run what is asked for; returns the exit code."""
    _refuse_what_does_not_go_together(args, parser)
    if args.oracle is not None:
        return _oracle(args, parser)
    if not importable("rich"):
        print('tidegate simulate needs rich: pip install "tidegate[cli]"', file=sys.stderr)
        return 2
    return _like(args, parser) if args.like is not None else _scenario(args, parser)


def _refuse_what_does_not_go_together(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    asked = [
        name
        for name, there in (
            ("a scenario", args.scenario is not None),
            ("--like", args.like is not None),
            ("--oracle", args.oracle is not None),
        )
        if there
    ]
    if not asked:
        parser.error("name a scenario file, or --oracle, or --like")
    if len(asked) > 1:
        parser.error(f"{' and '.join(asked)} do not go together")
    if args.scenarios is not None and args.like is None:
        parser.error("--scenarios goes with --like")
    refuse_one_file(args, parser)
    needed = _ORACLES.get(args.oracle, ())
    given = [name for name in _OF_ORACLES if getattr(args, name) is not None]
    for name in needed:
        if name not in given:
            parser.error(f"--oracle {args.oracle} needs --{name}")
    flags = [name for name in ("service", "dry_run", "bare") if getattr(args, name) and args.oracle is None]
    for name in [*(name for name in given if name not in needed), *flags]:
        place = "--oracle" if args.oracle is None else f"--oracle {' or '.join(_takers(name))}"
        parser.error(f"--{name.replace('_', '-')} goes with {place}")
    if args.dry_run and args.oracle == "degrading":
        # Whoever is let in beyond the limit slows the others down.
        parser.error("--dry-run goes with --oracle erlang-b or thresholds")
    if args.bare and not args.dry_run:
        parser.error("--bare goes with --dry-run")
    if args.oracle is not None and args.html is not None:
        parser.error("--html goes with a scenario or --like")


def _takers(name: str) -> list[str]:
    return [oracle for oracle, names in _ORACLES.items() if name in names]


# --- a scenario --------------------------------------------------------------------------------------


def _scenario(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from rich.console import Console

    from tidegate import _native
    from tidegate.simulate import html, show
    from tidegate.simulate.report import Report
    from tidegate.simulate.verdict import judge

    name = "standard input" if args.scenario == "-" else args.scenario
    try:
        text = sys.stdin.read() if args.scenario == "-" else Path(args.scenario).read_text(encoding="utf-8")
    except OSError as error:
        print(f"tidegate simulate: cannot read {name}: {error.strerror}", file=sys.stderr)
        return 1
    except UnicodeDecodeError as error:
        print(
            f"tidegate simulate: {name} is not UTF-8: {error.reason} at byte {error.start}", file=sys.stderr
        )
        return 1
    with target(args.json, parser) as json_file, target(args.html, parser) as html_file, terminable():
        try:
            report: Report = json.loads(_native.simulate(text, name, args.seed))
        except ConfigError as error:  # a line for each fault, which names the file
            print(error, file=sys.stderr)
            return 1
        verdict = judge(report)
        if json_file is not None:
            write_json(json_file, {**report, "verdict": verdict.sentence})
        if html_file is not None:
            command = ["simulate", args.scenario, "--seed", str(args.seed)]
            html_file.write(_page(partial(html.as_page, report, verdict), command))
    show.show(Console(stderr="-" in (args.json, args.html)), report, verdict)
    return 0


def _page(page: Callable[[Origin], Page], command: list[str]) -> str:
    from tidegate.report.origin import Origin
    from tidegate.report.page import render

    return render(page(Origin.here(shlex.join(["tidegate", *command]))))


def _like(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from rich.console import Console

    from tidegate.simulate.like import LikeError, like

    with target(args.json, parser) as json_file, target(args.html, parser) as html_file, terminable():
        try:
            found = like(args.like, args.seed, args.scenarios)
        except LikeError as error:
            print(f"tidegate simulate: {error}", file=sys.stderr)
            return 1
        if json_file is not None:
            write_json(json_file, found.figures)
        if html_file is not None:
            command = ["simulate", "--like", str(args.like), "--seed", str(args.seed)]
            if args.scenarios is not None:
                command += ["--scenarios", str(args.scenarios)]
            html_file.write(_page(found.page, command))
    found.show(Console(stderr="-" in (args.json, args.html)))
    return 0


# --- an oracle ---------------------------------------------------------------------------------------


def _oracle(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from tidegate import _native

    service, seed, dry_run, bare = args.service or "exponential", args.seed, args.dry_run, args.bare
    with target(args.json, parser) as json_file, terminable():
        try:
            match args.oracle:
                case "erlang-b":
                    (offered,) = _as_many(parser, "offered", args.offered, 1)
                    text, note = _native.oracle_erlang_b(
                        args.limit, offered, service=service, seed=seed, dry_run=dry_run, bare=bare
                    )
                case "degrading":
                    speed = (getattr(args, "lambda"), args.sigma, args.kappa)
                    text, note = _native.oracle_degrading(
                        args.rate, args.limit, *speed, service=service, seed=seed
                    )
                case _:
                    thresholds = _as_many(parser, "thresholds", args.thresholds, 4)
                    offered = _as_many(parser, "offered", args.offered, 4)
                    text, note = _native.oracle_thresholds(
                        args.limit,
                        thresholds,
                        offered,
                        service=service,
                        seed=seed,
                        dry_run=dry_run,
                        bare=bare,
                    )
        except ConfigError as error:
            parser.error(str(error))
        found = json.loads(text)
        if json_file is not None:
            write_json(json_file, found)
    if args.json != "-":
        _say(found)
    if note is not None:
        print(f"tidegate simulate: {note}", file=sys.stderr)
    return 0


def _as_many(parser: argparse.ArgumentParser, name: str, numbers: list[Number], count: int) -> list[Number]:
    if len(numbers) != count:
        wanted = "one number" if count == 1 else f"{count} numbers, one for each priority"
        parser.error(f"--{name} must be {wanted}, got {','.join(str(number) for number in numbers)}")
    return numbers


def _say(found: dict[str, Any]) -> None:
    several = isinstance(found["expected"], list)
    rows: list[tuple[str, float, float, float]] = (
        list(zip(Priority, found["expected"], found["simulated"], found["stderr"], strict=True))
        if several
        else [("all", found["expected"], found["simulated"], found["stderr"])]
    )
    for name, expected, simulated, error in rows:
        off = f"{(simulated - expected) / error:+.1f} standard errors of {error:.6f}"
        print(f"{name}: {simulated:.6f} shed, {expected:.6f} expected: {off}")
    print(f"{found['n']} arrivals")


# --- arguments ---------------------------------------------------------------------------------------


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 2**64):
        raise argparse.ArgumentTypeError(f"the seed must be a whole number from 0 to 2^64 - 1, got {text!r}")
    return int(text)


def _whole(text: str) -> int:
    if re.fullmatch(r"-?[0-9]{1,18}", text) is None:
        raise argparse.ArgumentTypeError(f"must be a whole number of at most 18 digits, got {text!r}")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text.replace("_", " "))  # 1_000 is Python's, not a number that people write
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None


def _numbers(text: str) -> list[float]:
    return [_number(part) for part in text.split(",")]


def _wholes(text: str) -> list[int]:
    return [_whole(part) for part in text.split(",")]
