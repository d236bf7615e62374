"""The lines of configuration and classifier cases, as ``vector_lines`` writes those of gates.

``open`` and ``reload`` have the text of a file and what they say: ``n=`` lines, each ``p0=`` the start of one
or ``l0=`` all of it. ``use`` says which gate the next calls are about, ``state`` and ``names`` what is
expected. Classifiers are written as the file that has them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

PRIORITIES = ["critical_plus", "critical", "sheddable_plus", "sheddable"]
DEFAULT_PRIORITY = 1000
FILE = "vector.toml"
CONFIG = -6


def encoded(text: str) -> str:
    """Hexadecimal, and a dot for nothing at all."""
    return text.encode().hex() or "."


def numbered(key: str, texts: list[str]) -> str:
    """All of them, and how many."""
    return f"n={len(texts)} " + " ".join(f"{key}{at}={encoded(text)}" for at, text in enumerate(texts))


def said(expect: dict[str, Any]) -> str:
    """What opening or reloading a file answers and says."""
    if "problems" not in expect:
        return f"want=0 {numbered('l', expect.get('changes', []))}"
    starts: list[str] = []
    for problem in expect["problems"]:
        key = f"{problem['key']}: " if problem["key"] else ""
        starts.append(f"{FILE}, line {problem['line']}: {key}{problem['message']}")
    return f"want={CONFIG} {numbered('p', starts)}"


def state(expect: dict[str, Any]) -> str:
    """The configuration of a gate, by the fields of its statistics and its rate."""
    fields: list[str] = []
    for key, value in expect.items():
        if key == "thresholds":
            fields += [f".threshold.{level}={weight}" for level, weight in enumerate(value)]
        elif key == "rate":
            rate = value or {"count": 0, "burst": 0, "seconds": 0}
            fields += [f".rate.{part}={number}" for part, number in rate.items()]
        elif key == "default_priority":
            fields.append(f".{key}={PRIORITIES.index(value)}")
        else:
            fields.append(f".{key}={int(value)}")
    return " ".join(fields)


def attributes(of: dict[str, str]) -> str:
    """A request: names and values."""
    return f"n={len(of)} " + " ".join(
        f"a{at}={encoded(name)}:{encoded(value)}" for at, (name, value) in enumerate(of.items())
    )


def priority(name: str | None) -> int:
    """The number of a priority, or of none."""
    return DEFAULT_PRIORITY if name is None else PRIORITIES.index(name)


def text(of: dict[str, Any]) -> str:
    """The file of a case or a step."""
    return encoded("\n".join(of["toml"]))


def configuration(
    case: dict[str, Any], call: Callable[[dict[str, Any], dict[str, int]], str]
) -> Iterator[str]:
    """The lines of a case with a file; ``call`` writes what gates are asked."""
    yield f"open toml={text(case)} {said(case)}"
    labels: dict[str, int] = {}
    for step in case.get("steps", []):
        expect = step["expect"]
        if "at_ns" in step:
            yield f"clock ns={step['at_ns']}"
        if "gate" in step:
            yield f"use gate={encoded(step['gate'])}"
        match step["op"]:
            case "reload":
                yield f"reload toml={text(step)} {said(expect)}"
            case "names":
                yield f"names {numbered('l', expect['names'])}"
            case "gate":
                yield f"state {state(expect)}"
            case "explain":
                yield f"explain text={encoded(''.join(line + chr(10) for line in expect['text']))}"
            case "classify":
                why = f"why={encoded(expect['why'])}" if "why" in expect else ""
                request = attributes(step["attributes"])
                yield f"classify {request} priority={priority(expect['priority'])} {why}"
            case _:
                yield call(step, labels)


def toml(value: Any) -> str:
    """A value as TOML has it, in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def classifier(case: dict[str, Any]) -> Iterator[str]:
    """The lines of a case with a classifier, as a file that has it."""
    lines = ["[classifier]", *(f"{key} = {toml(value)}" for key, value in case["classifier"].items())]
    opened = f"open toml={encoded(chr(10).join(lines))}"
    if "expect" in case:
        yield f"{opened} want={CONFIG}"
        return
    yield f"{opened} want=0"
    for each in case["cases"]:
        expect = each["expect"]
        rule = expect["rule"] or 0
        yield f"classify {attributes(each['attributes'])} priority={priority(expect['priority'])} rule={rule}"
