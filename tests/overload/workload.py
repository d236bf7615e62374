"""Writes workload.json: `python3 tests/overload/workload.py >tests/overload/workload.json`.

Requests come by chance, from a fixed seed, for two seconds at four loads. At load 1 they would fill the
gate's limit if they came evenly and were all let in.
"""

from __future__ import annotations

import json
import random
from typing import Any

SEED = 20
LOADS = (0.5, 1, 2, 4)
LIMIT = 8
HELD_MS = (200, 600)  # from, to
END_MS = 2000
AFTER = 3  # requests that find the gate closed

FILE = [
    "[gates.db]",
    f"limit = {LIMIT}",
    "thresholds = { sheddable_plus = 0.75, sheddable = { reserve = 4 } }",
    'rate = "32/s"',
    "burst = 4",
    "",
    "[classifier]",
    'default = "critical"',
    "",
    "[[classifier.rules]]",
    'match = { path = "/pay/*" }',
    'priority = "critical_plus"',
    "",
    "[[classifier.rules]]",
    'match = { path = "/reports/*" }',
    'priority = "sheddable_plus"',
    "",
    "[[classifier.rules]]",
    'match = { path = "/crawl/*" }',
    'priority = "sheddable"',
]

# How often of ten, and how much of the limit each takes.
PATHS = [("/pay/", 1, 1), ("/ask/", 4, 1), ("/reports/", 2, 2), ("/crawl/", 3, 1)]
OUTCOMES = ["success"] * 8 + ["overload", "ignore"]


def events(load: float, chance: random.Random) -> list[dict[str, Any]]:
    """What happens, in order: where two things happen at once, who leaves goes first."""
    mean_weight = sum(often * weight for _, often, weight in PATHS) / sum(often for _, often, _ in PATHS)
    per_ms = load * LIMIT / mean_weight / (sum(HELD_MS) / 2)
    found: list[tuple[int, int, dict[str, Any]]] = []
    now = 0.0
    number = 0
    while True:
        now += chance.expovariate(per_ms)
        if now >= END_MS:
            break
        path, _, weight = chance.choices(PATHS, [often for _, often, _ in PATHS])[0]
        at = int(now)
        leaves = at + chance.randint(*HELD_MS)
        found.append((at, 1, {"at_ms": at, "arrive": number, "path": f"{path}{number}", "weight": weight}))
        found.append((leaves, 0, {"at_ms": leaves, "leave": number, "outcome": chance.choice(OUTCOMES)}))
        number += 1
    found.append((END_MS, 2, {"at_ms": END_MS, "close": True}))
    for late in range(number, number + AFTER):
        found.append(
            (END_MS + 1, 1, {"at_ms": END_MS + 1, "arrive": late, "path": f"/ask/{late}", "weight": 1})
        )
        found.append((END_MS + 2, 0, {"at_ms": END_MS + 2, "leave": late, "outcome": "success"}))
    return [event for _, _, event in sorted(found, key=lambda each: each[:2])]


def main() -> None:
    """Write it, an event a line."""
    chance = random.Random(SEED)
    lines = ["{", f' "file": {json.dumps(FILE)},', ' "gate": "db",', ' "loads": [']
    for load in LOADS:
        lines.append(f'  {{"load": {load}, "events": [')
        lines.append(",\n".join(f"   {json.dumps(event)}" for event in events(load, chance)))
        lines.append("  ]}" + ("," if load != LOADS[-1] else ""))
    print("\n".join([*lines, " ]", "}"]))


if __name__ == "__main__":
    main()
