"""How often the capacity test recommends a limit that comes to nearly the most, on real targets.

Each time a limit is recommended and then measured in turns with every other from 1 to 16. It holds where
the median of its goodput, as a share of that of the best of the others, is 0.95 or more (PostgreSQL 0.90).
`make soak` calls it; TIDEGATE_SOAK_RUNS: how often (10). About half a minute each time and target.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path.append(str(HERE / "tests/python/capacity"))
os.chdir(HERE / "tests/python/capacity")  # where the targets' functions are

import realkit  # noqa: E402
from tidegate.capacity.target import Target  # noqa: E402
from tidegate.demo.postgres_server import PostgresServer  # noqa: E402

_RUNS = int(os.environ.get("TIDEGATE_SOAK_RUNS", "10"))
_LIMITS = range(1, 17)
# Of the runs: fewer than these, and something is wrong with the recommendation and not with the machine.
_LEAST = 0.8


def soak(name: str, target: Callable[[], Target], bound: float) -> bool:
    """Run one target again and again. Returns whether the limit held often enough."""
    held = 0
    for number in range(1, _RUNS + 1):
        found = realkit.run(target, _LIMITS, rounds=3, cell=0.25, seed=number)
        ratio = found.ratio()
        held += ratio >= bound
        print(f"{name} {number}: limit {found.recommendation.limit}, {ratio:.3f} of the best", flush=True)
    print(f"{name}: at least {bound:g} of the best in {held} of {_RUNS} runs", flush=True)
    return held >= _LEAST * _RUNS


def main() -> int:
    """Run all of them; returns the exit code."""
    results: list[bool] = []
    # It computes, and the others sleep: where processors are short, more threads take more of them.
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as folder:
        held = soak("sqlite", realkit.sqlite(Path(folder)), 0.95)
    if busy:
        print("sqlite: the machine is busy, so this is not judged")
    else:
        results.append(held)
    results.append(soak("function", realkit.function, 0.95))
    with realkit.application() as place:
        results.append(soak("fastapi", realkit.url(place), 0.95))
    with PostgresServer() as server:
        results.append(soak("postgres", realkit.postgres(server.dsn), 0.90))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
