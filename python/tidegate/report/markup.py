"""Text and data, so written that a browser cannot take them for anything else. Pure.

All of it is ASCII: a file that is read or written in the wrong encoding still says the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import cast


def text(value: str) -> str:
    """`value` as the content of an element or of a quoted attribute."""
    return escape(value).encode("ascii", "xmlcharrefreplace").decode("ascii")


def island(name: str, value: object) -> str:
    """`value` as JSON in an element with the id `name`, for scripts to read.

    Numbers that JSON has no words for (infinite, not a number) become null: browsers refuse to read them.
    """
    # "</script" would end the element and "<!--" change how its end is found.
    data = json.dumps(_finite(value), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{text(name)}">{data}</script>'


def _finite(value: object) -> object:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case str():
            return value
        case Mapping():
            members = cast("Mapping[str, object]", value)
            return {key: _finite(item) for key, item in members.items()}
        case Sequence():
            return [_finite(item) for item in cast("Sequence[object]", value)]
        case _:
            return value
