"""Turns tests/vectors/*.json into lines that a program without a JSON reader can take apart.

One call a line: a word, then ``key=value`` fields. Names are replaced by the C ABI's numbers, texts by the
hexadecimal of their UTF-8, permits' labels by numbers from 0. What the C ABI's types cannot express becomes
``skip``. The expectation is ``want=`` a status, or the fields that begin with a dot.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import file_lines

PRIORITIES = ["critical_plus", "critical", "sheddable_plus", "sheddable"]
ALIASES = {"essential": "critical", "non-essential": "sheddable"}
OUTCOMES = ["success", "overload", "ignore"]
REASONS = ["limit", "priority", "rate", "pressure", "closed", "timeout", "share"]
ERRORS = {"null": -1, "argument": -2, "stale": -3, "config": -6}
DEFAULT_PRIORITY = 1000
PPM = 1_000_000
UNITS = {"s": 1, "min": 60, "h": 3600}


class InexpressibleError(Exception):
    """A value that the C ABI's types do not hold."""


def whole(number: Any) -> int:
    """A whole number of at most 64 bits, which is what the ABI takes."""
    if not isinstance(number, int) or isinstance(number, bool) or not -(2**63) <= number < 2**63:
        raise InexpressibleError
    return number


def position(name: str, names: list[str]) -> int:
    """The number of a name; other names have no number."""
    if name not in names:
        raise InexpressibleError
    return names.index(name)


def priority(step: dict[str, Any], key: str = "priority") -> int:
    """The priority's number, or that of the gate's default."""
    if key not in step:
        return DEFAULT_PRIORITY
    return position(ALIASES.get(step[key], step[key]), PRIORITIES)


def thresholds(by_name: dict[str, Any]) -> str:
    """Fields t0 to t3: the kind and the value."""
    fields = []
    for name, value in by_name.items():
        level = priority({"priority": name})
        if isinstance(value, dict):
            fields.append(f"t{level}=2:{whole(value['reserve'])}")
        else:
            fields.append(f"t{level}=1:{round(value * PPM)}")
    return " ".join(fields)


def rate(of: dict[str, Any]) -> str:
    """Fields count, per and burst: numbers for what other languages read from a text."""
    text, burst = of.get("rate"), of.get("burst")
    if text is None:
        return f"count=0 per=0 burst={whole(burst or 0)}"
    if not isinstance(text, str) or isinstance(burst, bool) or burst == 0:
        raise InexpressibleError  # for C, a burst of 0 is the default
    count, _, unit = text.partition("/")
    if unit not in UNITS or not count.removeprefix("-").isdigit():
        raise InexpressibleError
    return f"count={whole(int(count))} per={UNITS[unit]} burst={whole(burst or 0)}"


def want(expect: dict[str, Any]) -> str:
    """The expectation of a call that answers a status, and of ``retry_after``."""
    if "error" in expect:
        return f"want={ERRORS[expect['error']]}"
    if "shed" in expect and isinstance(expect["shed"], str):
        return f"want={REASONS.index(expect['shed']) + 1}"
    if "admitted" in expect:
        return f"want=0 over={int(expect.get('over', False))}"
    if "seconds" in expect:
        seconds = {"unknown": -1, "never": "inf"}.get(expect["seconds"], expect["seconds"])
        return f"want=0 seconds={seconds}"
    return f"want={0 if expect['ok'] else ERRORS['stale']}"


def stats(expect: dict[str, Any]) -> str:
    """Fields by path, with numbers for names: ``.shed.1.0=2``."""
    fields = []
    for key, value in expect.items():
        if key in ("admitted", "would_shed"):
            fields += [f".{key}.{position(name, PRIORITIES)}={n}" for name, n in value.items()]
        elif key == "released":
            fields += [f".{key}.{position(name, OUTCOMES)}={n}" for name, n in value.items()]
        elif key == "shed":
            fields += [
                f".{key}.{position(name, PRIORITIES)}.{position(reason, REASONS)}={n}"
                for name, by_reason in value.items()
                for reason, n in by_reason.items()
            ]
        else:
            fields.append(f".{key}={value}")
    return " ".join(fields)


def call(step: dict[str, Any], labels: dict[str, int]) -> str:
    """One step's line, without its time."""
    op, expect = step["op"], step["expect"]
    if op in ("try_admit", "retry_after"):
        line = f"{op} priority={priority(step)} weight={whole(step.get('weight', 1))} {want(expect)}"
        if "as" in step:
            line += f" as={labels.setdefault(step['as'], len(labels))}"
        return line
    if op == "release":
        outcome = position(step.get("outcome", "success"), OUTCOMES)
        return f"{op} permit={labels[step['permit']]} outcome={outcome} {want(expect)}"
    if op == "exit":
        return f"{op} outcome={position(step.get('outcome', 'success'), OUTCOMES)} {want(expect)}"
    if op == "set_limit":
        return f"{op} limit={whole(step['limit'])} {want(expect)}"
    if op == "set_thresholds":
        return f"{op} {thresholds(step['thresholds'])} {want(expect)}"
    if op == "set_rate":
        return f"{op} {rate(step)} {want(expect)}"
    if op == "set_enforce":
        return f"{op} enforce={int(step['enforce'])} {want(expect)}"
    if op == "signal":
        name, good_for_ms = step["name"].encode().hex(), whole(step["good_for_ms"])
        return f"{op} name={name} value={step['value']} good_for_ms={good_for_ms} {want(expect)}"
    if op == "stats":
        return f"{op} {stats(expect)}"
    assert op in ("enter", "close"), op
    return f"{op} {want(expect)}"


def lines(case: dict[str, Any]) -> list[str]:
    """A case: its name, its gate, its steps."""
    result = [f"case {case['name'].encode().hex()}"]
    if "toml" in case:
        return [*result, *file_lines.configuration(case, call)]
    if "classifier" in case:
        return [*result, *file_lines.classifier(case)]
    gate = case["gate"]
    name = gate.get("name", "vector").encode().hex()
    expected = want(gate.get("expect", {"ok": True}))
    try:
        default = priority(gate, "default_priority") if "default_priority" in gate else 1
        result.append(
            f"gate limit={whole(gate['limit'])} name={name} enforce={int(gate.get('enforce', True))} "
            f"default={default} {thresholds(gate.get('thresholds', {}))} {rate(gate)} {expected}"
        )
    except InexpressibleError:
        assert "expect" in gate, case["name"]
        return [*result, "skip"]
    labels: dict[str, int] = {}
    for step in case["steps"]:
        if "at_ns" in step:
            result.append(f"clock ns={step['at_ns']}")
        try:
            result.append(call(step, labels))
        except InexpressibleError:
            assert step["expect"] == {"error": "argument"}, step
            result.append("skip")
    return result


def main() -> None:
    """Write all cases to standard output."""
    for path in sorted(Path(sys.argv[1]).glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            if "classifier" in case:  # has calls of its own
                continue
            print("\n".join(" ".join(line.split()) for line in lines(case)))


if __name__ == "__main__":
    main()
