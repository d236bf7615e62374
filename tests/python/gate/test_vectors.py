"""The shared vectors, tests/vectors/*.json, in Python. Their README tells what the words mean."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tidegate import ConfigError, Gate, Permit, Shed
from tidegate.testing import ManualClock

VECTORS = Path(__file__).parents[2] / "vectors"
CASES = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in sorted(VECTORS.glob("*.json"))
    for case in json.loads(file.read_text("utf-8"))
    if "gate" in case
]

# In Python what no rule allows is a TypeError or a ConfigError, and a contradiction is a ConfigError.
ERRORS: dict[str, Any] = {"argument": (TypeError, ConfigError), "config": ConfigError}
ENDINGS = {"success": None, "overload": TimeoutError(), "ignore": GeneratorExit()}


def made(gate: dict[str, Any], clock: ManualClock) -> Gate:
    arguments = {"name": "vector", **gate}
    arguments.pop("expect", None)
    return Gate(**arguments, clock=clock)


class Script:
    """A gate, and the permits that the steps have given names to."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.permits: dict[str, Permit] = {}

    def do(self, op: str, arguments: dict[str, Any]) -> Any:
        return getattr(self, op)(**arguments)

    def try_admit(self, label: str | None = None, **asked: Any) -> Any:
        try:
            permit = self.gate.admit(**asked).__enter__()
        except Shed as refused:
            return {"shed": refused.reason}
        assert label is not None, "a permit without a name can never be released"
        self.permits[label] = permit
        return {"admitted": True, "over": True} if permit.over else {"admitted": True}

    def release(self, permit: str, outcome: str = "success") -> Any:
        return {"ok": True} if self.permits[permit].release(outcome) else {"error": "stale"}

    def enter(self) -> Any:
        try:
            self.gate.__enter__()
        except Shed as refused:
            return {"shed": refused.reason}
        return {"admitted": True}  # a bare entry does not know more

    def exit(self, outcome: str = "success") -> Any:
        unmatched = self.gate.stats().unmatched_exits
        error = ENDINGS[outcome]
        self.gate.__exit__(type(error) if error else None, error, None)
        return {"ok": self.gate.stats().unmatched_exits == unmatched}

    def set_limit(self, limit: Any) -> Any:
        self.gate.set_limit(limit)
        return {"ok": True}

    def set_thresholds(self, thresholds: Any) -> Any:
        self.gate.set_thresholds(thresholds)
        return {"ok": True}

    def set_rate(self, rate: Any, **burst: Any) -> Any:
        self.gate.set_rate(rate, **burst)
        return {"ok": True}

    def set_enforce(self, enforce: bool) -> Any:
        self.gate.set_enforce(enforce)
        return {"ok": True}

    def signal(self, name: str, value: float, good_for_ms: int) -> Any:
        self.gate.signal(name, value, good_for=good_for_ms / 1e3)
        return {"ok": True}

    def close(self) -> Any:
        self.gate.close()
        return {"ok": True}

    def retry_after(self, **asked: Any) -> Any:
        seconds = self.gate.retry_after(**asked)
        return {"seconds": {None: "unknown", math.inf: "never"}.get(seconds, seconds)}

    def stats(self) -> Any:
        return self.gate.stats()


def assert_met(found: Any, expected: Any) -> None:
    """Of statistics and of mappings, what is expected may be a part."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert_met(found[key] if isinstance(found, dict) else getattr(found, key), value)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-9)
    else:
        assert found == expected


@pytest.mark.parametrize("case", CASES)
def test_vector(case: dict[str, Any]) -> None:
    clock = ManualClock()
    refused = case["gate"].get("expect", {}).get("error")
    if refused:
        with pytest.raises(ERRORS[refused]):
            made(case["gate"], clock)
        return
    script = Script(made(case["gate"], clock))
    try:
        for number, step in enumerate(case["steps"]):
            print(f"step {number}: {step}")
            clock.set(step.get("at_ns", clock.now_ns))
            run(script, step)
    finally:  # a script may end with permits out
        for permit in script.permits.values():
            permit.release()


def run(script: Script, step: dict[str, Any]) -> None:
    arguments = {name: value for name, value in step.items() if name not in ("at_ns", "op", "as", "expect")}
    if "as" in step:
        arguments["label"] = step["as"]
    op, expected = step["op"], step["expect"]
    if expected.get("error") in ERRORS:
        gate = script.gate
        before = repr(gate), gate.thresholds, gate.rate, gate.burst, gate.stats().generation
        with pytest.raises(ERRORS[expected["error"]]):
            script.do(op, arguments)
        assert (repr(gate), gate.thresholds, gate.rate, gate.burst, gate.stats().generation) == before
        return
    found = script.do(op, arguments)
    if op != "stats":
        assert set(found) == set(expected)
    assert_met(found, expected)


def test_there_are_vectors() -> None:
    assert len(CASES) >= 20
