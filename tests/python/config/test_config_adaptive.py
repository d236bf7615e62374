"""Controllers and signals of files: what a reload says of them, and what a simulation shows."""

from __future__ import annotations

import json
from typing import Any

from tidegate import Gates, _native
from tidegate.simulate import limits
from tidegate.testing import ManualClock

CONTROLLED = "[gates.db]\nlimit = 20\ncontroller = { kind = 'goodput', min = 4, max = 200 }\n"


def test_a_change_has_its_values() -> None:
    gates = Gates.from_toml("[gates.db]\nlimit = 20\nsignals = [{ kind = 'pushed' }]")
    changes = gates.reload(CONTROLLED + "objective = '1500ms'\nsignals = [{ kind = 'pushed', enter = 0.9 }]")
    found = {change.key: (change.previous, change.value) for change in changes}
    assert found["objective"] == (None, 1.5)
    assert found["controller"] == (None, {"controller": "goodput", "min": 4, "max": 200, "prior": 20})
    before, after = found["signals"]
    assert (before["enter"], after["enter"], after["ramp"]) == (0.85, 0.9, 20.0)
    assert {change.kind for change in changes} == {"changed"}
    assert (
        gates.reload(CONTROLLED + "objective = '1500ms'\nsignals = [{ kind = 'pushed', enter = 0.9 }]") == []
    )


def test_a_reload_leaves_the_limit_that_a_controller_has_found() -> None:
    gates = Gates.from_toml(CONTROLLED)
    db = gates["db"]
    db.set_limit(50)
    (change,) = gates.reload(CONTROLLED.replace("limit = 20", "limit = 30"))
    assert (change.key, change.previous, change.value) == ("limit", 20, 30)
    assert str(change).startswith("gate db: limit 20 -> 30 in the file, from which the controller starts")
    assert db.limit == 50


def test_each_move_is_told_once_when_a_reload_brings_another_controller() -> None:
    clock = ManualClock()
    gates = Gates.from_toml("[gates.db]\nlimit = 20\ncontroller = { kind = 'aimd' }", clock=clock)
    db = gates["db"]
    seen: list[int] = []
    db.subscribe(lambda event: seen.append(event.limit), "limit")

    def overload(seconds: int) -> None:
        for _ in range(11 * seconds):
            permit = db.try_admit()
            assert permit is not None
            clock.advance(100_000_000)
            permit.release("overload")

    overload(3)
    gates.reload("[gates.db]\nlimit = 20\ncontroller = { kind = 'aimd', max = 60, prior = 40 }")
    overload(3)
    assert seen == [change.limit for change in db.limit_history] == [18, 16, 14, 40, 36, 32, 28]


SCENARIO = """
duration = "5min"
[gate]
limit = 10
objective = "3s"
controller = { kind = "aimd", min = 2, max = 40 }
[arrivals]
rate = "90/s"
[service]
kind = "shared"
lambda = "3/s"
sigma = 0.02
"""


def _report(text: str) -> Any:
    return json.loads(_native.simulate(text, "f.toml", 1))


def test_a_simulation_shows_the_limits_path() -> None:
    report = _report(SCENARIO)
    moves = report["gate"]["limit_changes"]
    assert len(moves) > 10
    limit = moves[-1]["to"]
    assert limits.behind(report) == f"behind a gate of 10, which aimd brought to {limit} (2 to 40)"
    assert limits.parameter(report) == f"limit {limit}, found by aimd from 10 on, between 2 and 40"
    path = limits.path(report)
    assert path is not None
    assert path.startswith("Its limit: ... ")
    assert path.endswith(f"({moves[-1]['cause']}).")
    table = limits.table(report)
    assert table is not None
    rows = table.groups[0].rows
    assert len(rows) == len(moves)
    assert list(rows[0])[1:] == [str(moves[0]["from"]), str(moves[0]["to"]), moves[0]["cause"]]


def test_a_limit_that_stays_has_no_path() -> None:
    report = _report(SCENARIO.replace('controller = { kind = "aimd", min = 2, max = 40 }', ""))
    assert limits.behind(report) == "behind a gate of 10"
    assert limits.path(report) is None
    assert limits.table(report) is None
    ungated = _report(
        SCENARIO[: SCENARIO.index("[gate]")] + SCENARIO[SCENARIO.index("[arrivals]") :].replace("90", "9")
    )
    assert (limits.behind(ungated), limits.parameter(ungated)) == ("without a gate", "none")
