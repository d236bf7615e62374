"""What `tidegate capacity` does, once its command line is known to make sense."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate._errors import ConfigError
from tidegate.capacity import figures, preview, show, units, verdict
from tidegate.capacity.analysis import Plan, Recommendation
from tidegate.capacity.apart import ApartTarget
from tidegate.capacity.baseline import Baseline, BaselineError, compare
from tidegate.capacity.conductor import Conductor, Found, Load, Taken
from tidegate.capacity.journal import Journal, JournalError
from tidegate.capacity.rows import Rows
from tidegate.capacity.sql import PostgresTarget, sqlite_path
from tidegate.capacity.target import Target, TargetError
from tidegate.cli.capacity import ARTICLE_STAGE, ARTICLE_STAGES, ARTICLE_TIMEOUT, kind_of
from tidegate.cli.capacity_simulate import Simulated, simulate
from tidegate.demo.arrivals import TraceError, read_trace

if TYPE_CHECKING:
    from rich.console import Console

_TIMEOUT = "10s"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that has ended, in whatever way."""

    recommendation: Recommendation
    taken: Sequence[Taken]
    verdict: verdict.Verdict
    figures: Mapping[str, object]
    toml: str
    parameters: Sequence[tuple[str, str]]
    timeout: float
    interrupted: bool = False
    simulated: bool = False

    def page(self, command: str) -> str:
        """The report as an HTML file."""
        from tidegate.capacity import html
        from tidegate.report import page
        from tidegate.report.origin import Origin

        return page.render(
            html.as_page(
                self.recommendation,
                self.taken,
                self.verdict,
                Origin.here(command),
                data=self.figures,
                parameters=self.parameters,
                timeout=self.timeout,
                toml=self.toml,
                simulated=self.simulated,
            )
        )

    def picture(self, path: Path) -> None:
        """Draw the curve there."""
        from tidegate.capacity import png

        png.draw(path, self.recommendation, self.taken, self.verdict.sentence)

    def show(self, console: Console) -> None:
        """Print it."""
        show.show(console, self.recommendation, self.taken, self.verdict, self.toml)


def baseline(args: argparse.Namespace, parser: argparse.ArgumentParser) -> Baseline | None:
    """What to compare with, read before anything is sent."""
    if args.ci is None:
        return None
    try:
        return Baseline.read(args.ci)
    except BaselineError as error:
        parser.error(f"--ci: {error}")


def undrawable(path: Path) -> str | None:
    """Why there can be no picture at this place, if so: asked before the run, not after."""
    from tidegate.capacity import png

    return png.undrawable(path)


def _comparable(before: Baseline | None, run: Mapping[str, object], parser: argparse.ArgumentParser) -> None:
    """Refuse a baseline of another kind of target before anything is sent."""
    if before is not None and (why := before.of_another_kind(run)) is not None:
        parser.error(f"--ci: the baseline cannot be compared with: {why}")


def simulated(args: argparse.Namespace, parser: argparse.ArgumentParser, before: Baseline | None) -> Outcome:
    """Run the test on the simulator."""
    from tidegate.cli.capacity import SIMULATED

    asked = {name: getattr(args, name) for name in SIMULATED}
    known = {name: value for name, value in asked.items() if value is not None}
    if "lambda" in known:
        known["lambda_"] = known.pop("lambda")
    timeout = units.seconds(args.timeout or ARTICLE_TIMEOUT)
    accept = None if args.accept is None else units.MINUTE_S * units.per_second(args.accept)
    options = Simulated(
        **known,
        timeout=timeout,
        accept=accept,
        essential=args.essential,
        before=not args.no_before,
        seed=args.seed,
    )
    run = {"simulated": asdict(options)}
    _comparable(before, run, parser)
    try:
        with show.bar() as bar:
            result = simulate(options, lambda step, _measured: bar.begin(step, (0, 0.0)))
    except ConfigError as error:
        parser.error(str(error))
    print(result.erlang, file=sys.stderr)
    taken = [Taken(step, measured) for step, measured in result.steps]
    parameters = [(name, str(value)) for name, value in asdict(options).items() if value is not None]
    return _outcome(result.recommendation, taken, run, args, before, parameters, timeout)


def tested(
    args: argparse.Namespace, parser: argparse.ArgumentParser, before: Baseline | None
) -> Outcome | None:
    """Run the test on a real target; None if nothing was sent because it was not to be."""
    try:
        target, load, plan = target_of(args), _load(args), plan_of(args)
        described = target.describe()
        run: dict[str, object] = {"target": dict(described), "plan": asdict(plan), "load": _written(load)}
        _comparable(before, run, parser)
        print(preview.preview(described, plan, load), file=sys.stderr)
        if args.preview or not _agreed(args, parser):
            return None
        journal = _journal(args, run)
    except (TargetError, TraceError, JournalError, ConfigError, ValueError) as error:
        parser.error(str(error))
    try:
        found = _conduct(target, plan, load, journal)
    except JournalError as error:
        parser.error(f"--resume: {error}")
    except ConfigError as error:
        if args.resume is None:
            raise
        parser.error(f"--resume: {args.resume} holds what cannot have been measured: {error}")
    described = {**described, **target.describe()}
    parameters = [*described.items(), ("timeout", f"{plan.timeout:g} s"), ("arrivals", load.arrivals)]
    return _outcome(
        found.search.recommendation(), found.taken, run, args, before, parameters, plan.timeout, found
    )


def _conduct(target: Target, plan: Plan, load: Load, journal: Journal) -> Found:
    with show.bar() as bar:
        conductor = Conductor(target, plan, load, journal, bar)
        try:
            asyncio.run(conductor.conduct())
        except TargetError:
            pass  # stands in what was found
        except KeyboardInterrupt:
            conductor.found.interrupted = True
        finally:
            journal.close()
    return conductor.found


def _outcome(
    found: Recommendation,
    taken: Sequence[Taken],
    run: Mapping[str, object],
    args: argparse.Namespace,
    before: Baseline | None,
    parameters: Sequence[tuple[str, str]],
    timeout: float,
    real: Found | None = None,
) -> Outcome:
    whole = real is None or not (real.interrupted or real.broken)
    comparison = compare(before, figures.capacity(found), run) if before is not None and whole else None
    notes = () if real is None else tuple(real.notes)
    said = verdict.judge(
        found,
        notes=notes,
        broken=None if real is None else real.broken,
        interrupted=real is not None and real.interrupted,
        comparison=comparison,
    )
    data = figures.as_json(
        found, taken, run, verdict=said.sentence, holds=said.holds, notes=notes, gate=args.gate
    )
    if comparison is not None:
        data["fell"] = comparison.fell
    data["interrupted"] = real is not None and real.interrupted
    return Outcome(
        recommendation=found,
        taken=taken,
        verdict=said,
        figures=data,
        toml=found.toml(args.gate) or "",
        parameters=parameters,
        timeout=timeout,
        interrupted=real is not None and real.interrupted,
        simulated=real is None,
    )


# --- what is asked for -------------------------------------------------------------------------------


def plan_of(args: argparse.Namespace) -> Plan:
    """The plan of a command line."""

    def duration(text: str | None) -> float | None:
        return None if text is None else units.seconds(text)

    def rate(text: str | None) -> float | None:
        return None if text is None else units.per_second(text)

    stages = args.stages or (ARTICLE_STAGES if args.article else None)
    return Plan(
        timeout=units.seconds(args.timeout or (ARTICLE_TIMEOUT if args.article else _TIMEOUT)),
        stage=duration(ARTICLE_STAGE if args.article else args.stage),
        cell=duration(args.cell),
        warm_up=duration(args.warm_up),
        start_rate=rate(args.start_rate),
        rates=() if stages is None else units.rates(stages),
        bisect=not args.no_bisect,
        max_rate=rate(args.max_rate),
        max_limit=min(args.max_limit or args.max_in_flight, args.max_in_flight),
        essential=args.essential,
        accept=rate(args.accept),
        before=not args.no_before and not args.no_proof,
        prove=not args.no_proof,
        seed=args.seed,
        **({} if args.overload is None else {"overload": args.overload}),
    )


def target_of(args: argparse.Namespace) -> Target:
    """The target of a command line.

    Raises:
        TargetError: It cannot be one.
    """
    kind = kind_of(args.target)
    if kind == "url":
        return _url(args)
    _rows(args)  # what is wrong with it is said before anything is sent
    data = None if args.data is None else str(args.data.absolute())
    job: dict[str, object] = {"data": data, "threads": args.max_in_flight}
    if kind == "function":
        return ApartTarget({**job, "kind": "function", "function": args.target})
    statement = text_of(args.sql, "--sql")
    if not args.target.lower().startswith("sqlite"):
        return PostgresTarget(args.target, statement, _rows(args))
    return ApartTarget(
        {**job, "kind": "sqlite", "database": sqlite_path(args.target), "statement": statement}
    )


def _url(args: argparse.Namespace) -> Target:
    from tidegate.capacity.url import Request, UrlTarget

    body = None if args.body is None else text_of(args.body, "--body")
    headers: list[tuple[str, str]] = []
    for header in args.header:
        name, colon, value = header.partition(":")
        if not (colon and name.strip()):
            raise TargetError(f"--header {name!r} has no colon: write 'NAME: VALUE'")
        headers.append((name.strip(), value.strip()))
    return UrlTarget(
        Request(
            url=args.target,
            method=(args.method or ("GET" if body is None else "POST")).upper(),
            headers=headers,
            body=body,
            statuses=statuses(args.status or "200-299"),
            contains=args.contains,
        ),
        _rows(args),
        args.max_in_flight,
    )


def statuses(text: str) -> list[tuple[int, int]]:
    """Ranges of HTTP statuses: `200-299,304`.

    Raises:
        TargetError: They are none.
    """
    found: list[tuple[int, int]] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        ends = (low, high if dash else low)
        if not all(end.isascii() and end.isdecimal() and 100 <= int(end) <= 599 for end in ends):
            raise TargetError(f"--status {part.strip()!r} is no status or range of them: write 200-299,304")
        if int(ends[0]) > int(ends[1]):
            raise TargetError(f"--status {part.strip()!r} ends before it begins")
        found.append((int(ends[0]), int(ends[1])))
    return found


def text_of(argument: str, option: str) -> str:
    """What an argument says, or the file that it names after an @.

    Raises:
        TargetError: That cannot be read.
    """
    if not argument.startswith("@"):
        return argument
    try:
        return Path(argument[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"{option}: cannot read {argument[1:]}: {error}") from error


def _rows(args: argparse.Namespace) -> Rows:
    return Rows.none() if args.data is None else Rows.read(args.data)


def _load(args: argparse.Namespace) -> Load:
    return Load(
        arrivals=args.arrivals,
        trace=read_trace(args.trace) if args.arrivals == "trace" else None,
        seed=args.seed,
        most_in_flight=args.max_in_flight,
        largest_lag=units.seconds(args.max_lag),
    )


def _written(load: Load) -> dict[str, object]:
    """How load is made, for the journal: of a trace, which it is."""
    written = asdict(load)
    if load.trace is not None:
        written["trace"] = hashlib.sha256(repr(load.trace).encode()).hexdigest()[:16]
    return written


def _agreed(args: argparse.Namespace, parser: argparse.ArgumentParser) -> bool:
    if args.yes:
        return True
    if not sys.stdin.isatty():
        parser.error("nobody can be asked whether to send this: say --yes, or --preview to send nothing")
    print("Send it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _journal(args: argparse.Namespace, run: Mapping[str, object]) -> Journal:
    if args.resume is not None:
        return Journal.resume(args.resume, run)
    if args.log is None:
        return Journal(run)
    if args.log.exists() and args.log.stat().st_size:
        raise JournalError(f"{args.log} is there already: go on with it by --resume, or choose another --log")
    try:
        return Journal(run, args.log.open("w", encoding="utf-8"))
    except OSError as error:
        raise JournalError(f"cannot write {args.log}: {error.strerror}") from error
