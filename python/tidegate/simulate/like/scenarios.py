"""Every cell of a demo as a scenario for the simulator, in files that a user can take it from.

How the demo's parts become a scenario's:

| in the demo | in the scenario |
|---|---|
| the database, by the curve of its throughput | `[service]`, see `model` |
| the pool's threads (stock: the connections, which are fewer), and the queue before them | `servers` |
| the door, which is asked before the queue | `[gate]`; none where everybody may come in |
| who is essential | `[[arrivals.mix]]` |
| the moments at which users come | a trace with the very same moments |
| who waits in vain tries again, up to half a timeout later, but not after the window's end | `retries` |
| work that nobody waits for runs on | `on_timeout = "abandon"` |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tidegate.demo.arrivals import ESSENTIAL_SHARE, MAX_RETRIES, PAUSES, read_trace, users
from tidegate.demo.capacity import STOCK_WORKERS
from tidegate.demo.doors import ARMS, UNLIMITED
from tidegate.demo.report import Row
from tidegate.simulate.like.measured import Demo, LikeError
from tidegate.simulate.like.model import Model

# What a stock pool opens at most: `tidegate.demo.postgres`.
_STOCK_CONNECTIONS = 15

# When the last good answer came is read from the series: so many intervals of it, at most.
_INTERVALS = 250

_MOST_USERS = 1_000_000

_RULES = {
    "semaphore": "thresholds = { sheddable_plus = 1.0, sheddable = 1.0 }  # a plain counter\n",
    "tidegate": "",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One arm at one load."""

    measured: Row
    servers: int
    """How many are at work in the database at a time, at most."""
    scenario: str
    """TOML. It names its trace, which stands beside it."""
    trace: str
    """The trace's name: one for each load, so that all arms meet the same users."""
    times: tuple[float, ...]
    """When they come, in seconds. The simulation begins with the first of them."""

    @property
    def name(self) -> str:
        """Of the scenario's file."""
        return f"{self.measured.load:g}x-{self.measured.arm}.toml"

    def write(self, folder: Path) -> Path:
        """Both files; returns the scenario's path."""
        lines = "".join(f"{at:.6f}\n" for at in self.times)
        (folder / self.trace).write_text(f"seconds\n{lines}", encoding="utf-8")
        path = folder / self.name
        path.write_text(self.scenario, encoding="utf-8")
        return path


def cells(demo: Demo, model: Model) -> Iterator[Cell]:
    """The cells of a demo to which anybody came and whose arms are known here, in the demo's order.

    Raises:
        LikeError: They are too many users.
    """
    trace = None if demo.arrivals == "poisson" else read_trace()
    for number, row in enumerate(demo.rows, 1):
        if row.arm not in ARMS:
            continue
        if (coming := row.load * demo.best_per_s * demo.seconds) > _MOST_USERS:
            raise LikeError(f"loads[{number}]: at most {_MOST_USERS} users can be played, got {coming:.3g}")
        name = f"{row.load:g}x-users.csv"
        comers = users(row.load, demo.best_per_s, demo.seconds, seed=demo.seed, trace=trace)
        servers = _servers(row.arm, demo.workers)
        times = tuple(user.at for user in comers)
        if not times:
            continue
        yield Cell(
            measured=row,
            servers=servers,
            scenario=_scenario(demo, model, row, servers, name, demo.seconds - times[0]),
            trace=name,
            times=times,
        )


def left_out(demo: Demo) -> list[str]:
    """The arms that are not known here."""
    return list(dict.fromkeys(row.arm for row in demo.rows if row.arm not in ARMS))


def _servers(arm: str, workers: int) -> int:
    if arm not in UNLIMITED:
        return workers
    return _STOCK_CONNECTIONS if arm == "stock" else STOCK_WORKERS


def _scenario(demo: Demo, model: Model, row: Row, servers: int, trace: str, seconds: float) -> str:
    first, last = PAUSES
    gate = "" if row.arm in UNLIMITED else f"\n[gate]\nlimit = {demo.limit}\n{_RULES[row.arm]}"
    return f"""\
title = "The demo's {row.arm} at {row.load:g}x load"
duration = "{_number(seconds + demo.timeout)}s"  # users come for {_number(seconds)} s and wait
interval = "{_number((seconds + demo.timeout) / _INTERVALS)}s"
{gate}
[arrivals]
trace = "{trace}"

[[arrivals.mix]]
priority = "critical"
share = {_number(ESSENTIAL_SHARE)}

[[arrivals.mix]]
priority = "sheddable"
share = {_number(1 - ESSENTIAL_SHARE)}

[service]
kind = "shared"
lambda = "{_number(model.lambda_)}/s"
sigma = {_number(model.sigma)}
kappa = {_number(model.kappa)}
processors = {model.processors}
servers = {servers}
sizes = {{ kind = "deterministic" }}

[clients]
timeout = "{_number(demo.timeout)}s"
on_timeout = "abandon"

[clients.retries]
most = {MAX_RETRIES}
after = "{_number(demo.timeout * last)}s"
jitter = {_number(1 - first / last)}
backoff = 1.0
on = ["timeout"]
until = "{_number(seconds)}s"
"""


def _number(value: float) -> str:
    """Without an exponent, which times and rates do not have."""
    return f"{value:.9f}".rstrip("0").removesuffix(".")
