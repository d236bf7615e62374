"""The gate against exact queueing theory and against the article, at full power: writes docs/proof.md.

Every line is a run of `tidegate simulate`, which the page names, or the means of sixty runs. A line passes if
theory lies within three standard errors of the simulation, and these are small enough to notice a share
that is 5 % off (20 % where it is below 0.005). ``--only TEXT`` runs the lines whose names have the text, and
writes nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import proof_article
from proof_article import FAR, KEYS, Case

ROOT = Path(__file__).parents[1]
ORACLES = ROOT / "tests" / "oracles"
PAGE = ROOT / "docs" / "proof.md"

SERVICES = ("exponential", "deterministic", "lognormal", "hyperexponential")
PRIORITIES = ("critical_plus", "critical", "sheddable_plus", "sheddable")

POWER = 0.05 / FAR
"""The largest relative standard error, above a share of RARE."""
RARE = 0.005
RARE_POWER = 0.20 / FAR


# --- against theory ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A run against theory."""

    section: str
    arguments: tuple[str, ...]
    shed: list[float]
    """What the table of oracles has, by priority where there are several."""

    @property
    def command(self) -> str:
        """What repeats it."""
        return shlex.join(["tidegate", "simulate", *self.arguments])

    def run(self) -> Outcome:
        """Run it, as anybody would."""
        command = [sys.executable, "-m", "tidegate.cli", "simulate", *self.arguments, "--json", "-"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return Outcome(
            self, **{key: value if isinstance(value, list) else [value] for key, value in found.items()}
        )


@dataclass(frozen=True)
class Outcome:
    """What theory and simulation say, by priority where there are several."""

    line: Line
    expected: list[float]
    simulated: list[float]
    stderr: list[float]
    n: list[int]

    @property
    def distances(self) -> list[float]:
        """From theory, in standard errors."""
        each = zip(self.expected, self.simulated, self.stderr, strict=True)
        return [(simulated - expected) / error for expected, simulated, error in each]

    @property
    def faults(self) -> list[str]:
        """What is wrong with it."""
        found: list[str] = []
        for exact, expected, error, distance in zip(
            self.line.shed, self.expected, self.stderr, self.distances, strict=True
        ):
            if not math.isclose(exact, expected, rel_tol=1e-9):
                found.append(f"{expected} is not the table's {exact}")
            if abs(distance) > FAR:
                found.append(f"{distance:+.2f} standard errors off")
            if error > (POWER if exact >= RARE else RARE_POWER) * exact:
                found.append(f"a standard error of {error:.2g} sees too little of {exact:.2g}")
        return found


def lines() -> Iterator[Line]:
    """All runs, in the order of the page."""
    oracles: dict[str, list[dict[str, Any]]] = json.loads(
        (ORACLES / "oracles.json").read_text(encoding="utf-8")
    )
    for seed, row in enumerate(oracles["erlang_b"], 1):
        system = ("--oracle", "erlang-b", "--limit", str(row["limit"]), "--offered", str(row["offered"]))
        for service in SERVICES:
            yield Line("Erlang B", (*system, "--service", service, "--seed", str(seed)), [row["shed"]])
    for seed, row in enumerate(oracles["degrading"], 101):
        system = ("--oracle", "degrading", "--rate", str(row["rate_per_min"]), "--limit", str(row["limit"]))
        speed = (
            "--lambda",
            str(row["lam_per_min"]),
            "--sigma",
            str(row["sigma"]),
            "--kappa",
            str(row["kappa"]),
        )
        for service in SERVICES:
            arguments = (*system, *speed, "--service", service, "--seed", str(seed))
            yield Line("A database that degrades", arguments, [row["shed"]])
    for seed, row in enumerate(oracles["thresholds"], 201):
        system = ("--oracle", "thresholds", "--limit", str(row["limit"]))
        lists = ("--thresholds", _list(row["thresholds"]), "--offered", _list(row["offered"]))
        yield Line("Thresholds", (*system, *lists, "--seed", str(seed)), row["shed"])
    for seed, row in enumerate(oracles["erlang_b"], 301):
        system = ("--oracle", "erlang-b", "--limit", str(row["limit"]), "--offered", str(row["offered"]))
        for service in SERVICES[:3]:
            arguments = (*system, "--service", service, "--dry-run", "--seed", str(seed))
            yield Line("Dry run", arguments, [row["shed"]])
        yield Line("Dry run", (*system, "--dry-run", "--bare", "--seed", str(seed)), [row["shed"]])


def _list(numbers: Sequence[float]) -> str:
    return ",".join(str(number) for number in numbers)


LEADS = {
    "Erlang B": "A gate in front of what does not slow down sheds what Erlang's formula says, whatever the "
    "service times are.",
    "A database that degrades": "Queries that slow each other down by the universal scalability law: a "
    "state-dependent shared processor, exact for any sizes.",
    "Thresholds": "Four priorities in one gate: a birth-death chain, exact for exponential service.",
    "Dry run": "Dry run lets everybody in, and counts as would-be sheds what enforcement would have shed. "
    "With permits that is exact for any service times, by bare entries (`--bare`) for exponential ones.",
}


def section(title: str, outcomes: Sequence[Outcome]) -> list[str]:
    """The part of the page about one kind of system."""
    several = len(outcomes[0].expected) > 1
    found = [f"## {title}", "", LEADS[title], ""]
    found += [
        f"| command |{' priority |' if several else ''} expected | simulated | error, % | off by, errors "
        "| arrivals | |",
        f"|---|{'---|' if several else ''}---|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        verdict = "; ".join(outcome.faults) or "passed"
        for at, distance in enumerate(outcome.distances):
            expected, error = outcome.expected[at], outcome.stderr[at]
            cells = [f"`{outcome.line.command}`" if at == 0 else ""]
            cells += [PRIORITIES[at]] if several else []
            cells += [f"{expected:.6f}", f"{outcome.simulated[at]:.6f}", f"{100 * error / expected:.2f}"]
            cells += [f"{distance:+.2f}", *((str(outcome.n[0]), verdict) if at == 0 else ("", ""))]
            found.append(f"| {' | '.join(cells)} |")
    return [*found, ""]


# --- the page ----------------------------------------------------------------------------------------


def page(outcomes: Sequence[Outcome], cases: Sequence[Case]) -> str:
    """The page, without anything that another run would change."""
    text = [
        "# Proof",
        "",
        "Written by `make proof`. The simulator drives the gate that ships, on a manual clock; here is what",
        "it sheds beside what it must shed. A line passes where theory lies within three standard errors of",
        "the simulation, and these are at most 1.67 % of the share, so that one that is 5 % off would be",
        "noticed (6.67 % below a share of 0.005). Errors are from batch means. Seeds are fixed, so that the",
        "page comes out the same again.",
        "",
        _spread([distance for outcome in outcomes for distance in outcome.distances]),
        "",
    ]
    for title in LEADS:
        text += section(title, [outcome for outcome in outcomes if outcome.line.section == title])
    return "\n".join([*text, *proof_article.section(cases)])


def _spread(distances: Sequence[float]) -> str:
    within = [sum(abs(distance) <= bound for distance in distances) for bound in (1, 2, 3)]
    shares = ", ".join(f"{100 * count / len(distances):.0f} %" for count in within)
    return (
        f"Of {len(distances)} shares {shares} lie within one, two and three standard errors of theory, "
        "where 68, 95 and 99.7 % were to be expected; on average they are off by "
        f"{mean(distances):+.2f} standard errors."
    )


def main() -> int:
    """Run all, write the page and say how many passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", metavar="TEXT", help="run the lines whose names have this, and write nothing"
    )
    only: str | None = parser.parse_args().only

    def wanted(name: str) -> bool:
        return only is None or only in name

    cases = json.loads((ORACLES / "article.json").read_text(encoding="utf-8"))
    outcomes: list[Outcome] = []
    compared: list[Case] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for outcome in pool.map(Line.run, [line for line in lines() if wanted(line.command)]):
            outcomes.append(outcome)
            print(f"{outcome.line.command}: {'; '.join(outcome.faults) or 'passed'}", flush=True)
        for case in pool.map(
            proof_article.compare, [case for case in cases if wanted(f"article: {case['name']}")]
        ):
            compared.append(case)
            worst = ", ".join(f"{key} {case.farthest(key)[0]:.2f}" for key in KEYS)
            print(
                f"article: {case.name}: {'passed' if case.passed else 'failed'}; farthest {worst}", flush=True
            )
    if only is None:
        PAGE.write_text(page(outcomes, compared), encoding="utf-8")
    passed = sum(not outcome.faults for outcome in outcomes) + sum(case.passed for case in compared)
    failed = len(outcomes) + len(compared) - passed
    print(f"proof: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
