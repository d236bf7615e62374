"""Functions to test, as a user would have them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Any

calls: list[Any] = []


def nothing() -> None: ...


def prints() -> None:
    print("functions may print")


def slowly() -> None:
    time.sleep(0.05)


async def slowly_async() -> None:
    await asyncio.sleep(0.05)


def of_row(row: dict[str, Any]) -> None:
    if row != {"n": row["n"], "id": str(row["n"] % 2 + 1)}:
        raise ValueError(f"got {row}")


def wrong() -> None:
    raise LookupError("no such order")


def ends_the_process() -> None:
    os._exit(3)


def never() -> None:
    threading.Event().wait()


def two(_one: object, _other: object) -> None: ...


# A service whose capacity is known by construction: each pair at work costs both time.
_at_work = 0
_counting = threading.Lock()


def degrading() -> None:
    global _at_work
    with _counting:
        _at_work += 1
        others = _at_work - 1
    time.sleep(0.02 * (1 + 0.05 * others + 0.01 * others * (others + 1)))
    with _counting:
        _at_work -= 1
