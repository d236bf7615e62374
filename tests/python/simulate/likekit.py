"""A demo that was really run, and changes to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("demo.json")
"""`tidegate demo --seconds 3` on a machine with two cores."""


def demo_json() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def changed(**values: Any) -> str:
    """The demo's JSON with other values; None leaves a key out."""
    fields = {**demo_json(), **values}
    return json.dumps({key: value for key, value in fields.items() if value is not None})


def with_row(number: int, **values: Any) -> str:
    """The demo's JSON with other values in one of its loads."""
    fields = demo_json()
    fields["loads"][number] |= values
    return json.dumps(fields)
