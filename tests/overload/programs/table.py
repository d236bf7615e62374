"""The workload's table, by Tidegate for Python."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tidegate import Permit, Shed
from tidegate._native import Gates
from tidegate.testing import ManualClock


def row(workload: dict[str, Any], load: dict[str, Any]) -> dict[str, Any]:
    """One load, on gates and a clock of its own."""
    clock = ManualClock()
    gates = Gates.from_toml("\n".join(workload["file"]), clock=clock)
    gate = gates[workload["gate"]]
    held: dict[int, Permit] = {}
    offered, admitted, released = Counter[str](), Counter[str](), Counter[str]()
    shed: dict[str, Counter[str]] = {}
    for event in load["events"]:
        clock.set(event["at_ms"] * 1_000_000)
        if "close" in event:
            gate.close()
        elif "leave" in event:
            permit = held.pop(event["leave"], None)
            if permit is not None:
                permit.release(event["outcome"])
                released[event["outcome"]] += 1
        else:
            priority = gates.classify({"path": event["path"]})
            assert priority is not None
            offered[priority] += 1
            try:
                held[event["arrive"]] = gate.admit(priority=priority, weight=event["weight"]).__enter__()
                admitted[priority] += 1
            except Shed as why:
                shed.setdefault(priority, Counter())[why.reason] += 1
    stats = gate.stats()
    return {
        "load": load["load"],
        "offered": offered,
        "admitted": admitted,
        "shed": shed,
        "released": released,
        "high_water": stats.high_water,
        "in_flight": stats.in_flight,
        "stats": {
            key: getattr(stats, key) for key in ("admitted", "shed", "released", "high_water", "in_flight")
        },
    }


workload = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
print(json.dumps({"language": "python", "loads": [row(workload, load) for load in workload["loads"]]}))
