"""Whether the table on standard input is the expected one: `compare.py WORKLOAD LANGUAGE <TABLE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import expected

BY_THE_GATE = ("admitted", "shed", "released", "high_water", "in_flight")


def without_zeros(value: Any) -> Any:
    """A count of nothing may be written or left out."""
    if not isinstance(value, dict):
        return value
    kept = {key: without_zeros(each) for key, each in value.items()}
    return {key: each for key, each in kept.items() if each not in (0, {}) or key in ("load", *BY_THE_GATE)}


def differences(row: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What a row has otherwise: as the program counted it, and as the gate did."""
    found: list[str] = []
    for key, want in wanted.items():
        got = without_zeros({key: row.get(key)})[key]
        if got != want:
            found.append(f"load {wanted['load']}, {key}: {got}, expected {want}")
    for key in BY_THE_GATE:
        got = without_zeros({key: row.get("stats", {}).get(key)})[key]
        if got != wanted[key]:
            found.append(f"load {wanted['load']}, stats, {key}: {got}, expected {wanted[key]}")
    return found


def main() -> int:
    """Say what differs."""
    workload = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    wanted = expected.table(workload)
    got = json.load(sys.stdin)
    found: list[str] = []
    if got.get("language") != sys.argv[2]:
        found.append(f"language: {got.get('language')}, expected {sys.argv[2]}")
    if len(got["loads"]) != len(wanted):
        found.append(f"{len(got['loads'])} loads, expected {len(wanted)}")
    for row, want in zip(got["loads"], wanted, strict=False):
        found += differences(row, want)
    print("\n".join(found) or f"{sys.argv[2]}: {len(wanted)} loads as expected")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
