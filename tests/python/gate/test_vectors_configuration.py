"""The shared vectors of configuration files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_vectors import VECTORS, Script, assert_met, run
from tidegate import ConfigError, Gate, Gates
from tidegate.testing import ManualClock

CASES = json.loads((VECTORS / "configuration.json").read_text("utf-8"))
SECONDS = {"s": 1, "min": 60, "h": 3600}


def text(of: dict[str, Any]) -> str:
    return "\n".join(of["toml"])


def assert_problems(error: ConfigError, expected: list[dict[str, Any]]) -> None:
    assert [(got.line, got.key) for got in error.problems] == [
        (each["line"], each["key"]) for each in expected
    ]
    for got, each in zip(error.problems, expected, strict=True):
        assert got.message.startswith(each["message"])


def state(gate: Gate, asked: dict[str, Any]) -> dict[str, Any]:
    read = {
        "limit": lambda: gate.limit,
        "thresholds": lambda: list(gate.thresholds.values()),
        "default_priority": lambda: gate.default_priority,
        "enforce": lambda: gate.enforce,
        "timing": lambda: gate.stats().occupancy is not None,
        "closed": lambda: gate.closed,
        "rate": lambda: rate(gate),
    }
    return {key: read[key]() for key in asked}


def rate(gate: Gate) -> dict[str, Any] | None:
    if gate.rate is None:
        return None
    count, _, unit = gate.rate.partition("/")
    return {"count": int(count), "seconds": SECONDS[unit], "burst": gate.burst}


class OfAFile:
    """The gates of a file, and the permits of the steps."""

    def __init__(self, case: dict[str, Any], clock: ManualClock) -> None:
        self.gates = Gates.from_toml(text(case), clock=clock)
        self.scripts: dict[str, Script] = {}

    def script(self, name: str) -> Script:
        """Kept, so that it is there also when the file has the gate no more."""
        for gate in self.gates.values():
            self.scripts.setdefault(gate.name, Script(gate))
        return self.scripts[name]

    def step(self, step: dict[str, Any]) -> None:
        expected = step["expect"]
        op = step["op"]
        if op == "reload":
            for name in self.gates:
                self.script(name)
            if "problems" in expected:
                with pytest.raises(ConfigError) as caught:
                    self.gates.reload(text(step))
                assert_problems(caught.value, expected["problems"])
            else:
                assert [str(change) for change in self.gates.reload(text(step))] == expected["changes"]
        elif op == "names":
            assert list(self.gates) == expected["names"]
        elif op == "explain":
            assert self.gates.explain().splitlines() == expected["text"]
        elif op == "classify":
            attributes = step["attributes"]
            assert self.gates.classify(attributes) == expected["priority"]
            classifier = self.gates.classifier
            if classifier is not None:
                explained = classifier.explain(attributes)
                assert explained.priority == expected["priority"]
                assert str(explained) == expected["why"]
        elif op == "gate":
            gate = self.script(step["gate"]).gate
            assert_met(state(gate, expected), expected)
        else:
            run(self.script(step["gate"]), {key: value for key, value in step.items() if key != "gate"})


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_vector(case: dict[str, Any]) -> None:
    clock = ManualClock()
    if "problems" in case:
        with pytest.raises(ConfigError) as caught:
            Gates.from_toml(text(case), clock=clock)
        assert_problems(caught.value, case["problems"])
        return
    running = OfAFile(case, clock)
    try:
        for number, step in enumerate(case["steps"]):
            print(f"step {number}: {step}")
            clock.set(step.get("at_ns", clock.now_ns))
            running.step(step)
    finally:
        for script in running.scripts.values():
            for permit in script.permits.values():
                permit.release()
