"""Every hook against every fault: runs the tests marked ``leak`` and writes docs/leak-matrix.md.

``@pytest.mark.leak(HOOK, FAULT)`` puts a test into a cell. A cell holds if all of its tests do, and each of
these ends with nothing in flight and full capacity. ``--check`` runs nothing and compares the cells with the
page.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "leak-matrix.md"

FAULTS = {
    "exception": "the body raises",
    "base-exception": "the body raises what is no Exception: SystemExit, a class of its own",
    "keyboard-interrupt": "signals at random moments around checkout and return",
    "cancel-before": "the task is cancelled before it asks",
    "cancel-in": "the task is cancelled while it connects, or waits inside the pool",
    "cancel-after": "the task is cancelled in the body, or while it gives back",
    "timeout": "the pool, the statement or the caller's deadline times out",
    "nested": "a request asks again for what it holds",
    "failed-connect": "the database refuses the connection, or a listener raises",
    "invalidate": "the connection is declared broken while it is out",
    "detach": "the connection leaves the pool's care",
    "gc": "nobody gives it back, and the garbage collector finds it",
    "dispose": "the pool is closed while connections are out",
    "client-gone": "the client leaves in the middle of the answer",
    "server-killed": "the server is killed with SIGKILL",
}

Cell = tuple[str, str]


class Cells:
    """Which tests are in which cell, and how they ended."""

    def __init__(self) -> None:
        self.of_test: dict[str, Cell] = {}
        self.outcomes: dict[Cell, list[str]] = defaultdict(list)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Note the cells, and refuse those that the page has no column for."""
        for item in items:
            for mark in item.iter_markers("leak"):
                hook, fault = mark.args
                if fault not in FAULTS:
                    raise pytest.UsageError(f"{item.nodeid}: no such fault: {fault!r}")
                self.of_test[item.nodeid] = hook, fault

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test counts as failed if any part of it did."""
        if report.nodeid in self.of_test and (report.when == "call" or report.outcome != "passed"):
            self.outcomes[self.of_test[report.nodeid]].append(report.outcome)

    def verdicts(self) -> dict[Cell, str]:
        """passed, failed or skipped, for each cell."""
        return {cell: _verdict(outcomes) for cell, outcomes in self.outcomes.items()}


def _verdict(outcomes: list[str]) -> str:
    if "failed" in outcomes:
        return "failed"
    return "passed" if "passed" in outcomes else "skipped"


def page(verdicts: dict[Cell, str], tests: dict[Cell, int]) -> str:
    """The page, without anything that another run would change."""
    hooks = sorted({hook for hook, _ in verdicts})
    lines = [
        "# Leak matrix",
        "",
        "Written by `make leak-matrix`. Each number is that many tests, against the real library and a real",
        "server, which end with nothing in flight and room for exactly the limit. A dot: the fault cannot",
        "happen there (a synchronous hook is not cancelled, an edge has no connections). A word instead of a",
        "number: the cell failed or was skipped where the page was written.",
        "",
        "| hook | " + " | ".join(FAULTS) + " |",
        "|---|" + "---|" * len(FAULTS),
    ]
    for hook in hooks:
        cells = [_shown(verdicts.get((hook, fault)), tests.get((hook, fault), 0)) for fault in FAULTS]
        lines.append(f"| {hook} | " + " | ".join(cells) + " |")
    lines += ["", "| fault | what happens |", "|---|---|"]
    lines += [f"| {fault} | {meaning} |" for fault, meaning in FAULTS.items()]
    return "\n".join(lines) + "\n"


def _shown(verdict: str | None, tests: int) -> str:
    if verdict is None:
        return "·"
    return str(tests) if verdict == "passed" else f"**{verdict}**"


def _cells_of_page() -> set[Cell]:
    found: set[Cell] = set()
    for line in PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []:
        hook, *shown = (part.strip() for part in line.strip("|").split("|"))
        if len(shown) == len(FAULTS):
            found.update(
                (hook, fault) for fault, text in zip(FAULTS, shown, strict=True) if text.strip("*").isalnum()
            )
    return {(hook, fault) for hook, fault in found if hook != "hook"}


def check() -> int:
    """Compare the page with the tests that there are."""
    cells = Cells()
    pytest.main(
        ["-m", "leak", "--collect-only", "-qq", "--no-header", "-p", "no:cacheprovider"], plugins=[cells]
    )
    there = set(cells.of_test.values())
    differing = there ^ _cells_of_page()
    if differing:
        print(f"docs/leak-matrix.md differs from the tests in {sorted(differing)}: run `make leak-matrix`")
    return 1 if differing else 0


def main() -> int:
    """Run the matrix, and write the page."""
    if sys.argv[1:] == ["--check"]:
        return check()
    cells = Cells()
    pytest.main(["-m", "leak", *sys.argv[1:]], plugins=[cells])
    verdicts = cells.verdicts()
    tests = {cell: len(outcomes) for cell, outcomes in cells.outcomes.items()}
    if sys.argv[1:]:
        print("a selection of the tests: docs/leak-matrix.md is left as it is")
    else:
        PAGE.write_text(page(verdicts, tests), encoding="utf-8")
    print(f"{sum(tests.values())} tests in {len(tests)} cells")
    count = {kind: list(verdicts.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"leak-matrix: {count['passed']} passed, {count['failed']} failed{skipped}")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
