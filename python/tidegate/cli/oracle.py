"""`tidegate simulate --oracle`: what the gate sheds beside what queueing theory says."""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import Any, TypeVar

from tidegate import Priority
from tidegate._errors import ConfigError
from tidegate.cli.common import target, terminable, write_json

_ORACLES = {
    "erlang-b": ("limit", "offered"),
    "degrading": ("rate", "limit", "lambda", "sigma", "kappa"),
    "thresholds": ("limit", "thresholds", "offered"),
}
_OF_ORACLES = ("limit", "offered", "rate", "lambda", "sigma", "kappa", "thresholds")
Number = TypeVar("Number", int, float)
_SERVICES = ("exponential", "deterministic", "lognormal", "hyperexponential")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the oracles."""
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


def refuse_what_does_not_go_together(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """End with a usage error where an option is missing, or one too many."""
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


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Simulate an oracle's system; returns the exit code."""
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
        off = f"{(simulated - expected) / error:+.1f} standard errors of {error:.2g}"
        print(f"{name}: {simulated:.6g} shed, {expected:.6g} expected: {off}")
    print(f"{found['n']} arrivals")


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
