"""`tidegate simulate`: the command line of the simulator."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate._errors import ConfigError
from tidegate.cli import oracle
from tidegate.cli.common import importable, refuse_one_file, seed, target, terminable, write_json

if TYPE_CHECKING:
    from tidegate.report.origin import Origin
    from tidegate.report.page import Page

SUMMARY = "play a scenario through the real gate, in virtual time"
USAGE = "[-h] [OPTION ...] SCENARIO.toml, or --oracle NAME, or --like DEMO.json"
DESCRIPTION = """
Run a scenario from a TOML file: who comes, which gate they meet, what serves them and what they do then.
Or, with --oracle, compare what the gate sheds with what queueing theory says. Or, with --like, predict a
demo's figures from what the demo measured of the database alone. Exit code 0: it ran; 1: the file cannot be
used; 2: usage.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegate simulate`."""
    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO.toml", help="what to run; - for standard input"
    )
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help="of everything left to chance (1)")
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
    oracle.configure(parser)


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Run what is asked for; returns the exit code."""
    _refuse_what_does_not_go_together(args, parser)
    if args.oracle is not None:
        return oracle.run(args, parser)
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
    refuse_one_file(args, parser, args.like or args.scenario)
    oracle.refuse_what_does_not_go_together(args, parser)


# --- a scenario --------------------------------------------------------------------------------------


def _scenario(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from rich.console import Console

    from tidegate import _native
    from tidegate.simulate import html, show
    from tidegate.simulate.report import Report
    from tidegate.simulate.verdict import judge

    name = "standard input" if args.scenario == "-" else args.scenario
    try:
        text = _standard_input() if args.scenario == "-" else Path(args.scenario).read_text(encoding="utf-8")
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


def _standard_input() -> str:
    """As the file that it stands for would be read, whatever the locale."""
    with open(0, encoding="utf-8", closefd=False) as file:
        return file.read()


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
