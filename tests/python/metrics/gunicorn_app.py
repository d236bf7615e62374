"""A small WSGI application that gunicorn serves: each path does one thing to the gate `db`."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tidegate import Gate, Permit, Shed
from tidegate.prometheus import wsgi_app

gate = Gate("db", limit=20, timing=True)
full = Gate("full", limit=0)
kept: list[Permit | None] = []


def block() -> str:
    with gate:
        return "admitted"


def permit() -> str:
    with gate.admit(priority="sheddable"):
        return "admitted"


def fail() -> str:
    try:
        with gate.admit():
            raise ValueError("a bug")
    except ValueError:
        return "admitted"


def shed() -> str:
    try:
        with full:
            raise AssertionError("it is full")
    except Shed:
        return "shed"


def keep() -> str:
    """Three that stay in flight as long as the process lives."""
    kept.extend(gate.try_admit() for _ in range(3))
    return "kept"


def meet() -> str:
    """Waits until all four workers are here, so that four requests at once reach each of them."""
    places = Path(os.environ["TEST_PLACES"])
    (places / str(os.getpid())).touch()
    give_up = time.monotonic() + 30
    while len(list(places.iterdir())) < 4:
        if time.monotonic() > give_up:
            return "alone"
        threading.Event().wait(0.005)
    return "met"


ACTIONS: dict[str, Callable[[], str]] = {
    f"/{action.__name__}": action for action in (block, permit, fail, shed, keep, meet)
}


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/metrics":
        return wsgi_app(environ, start_response)
    answer = ACTIONS[environ["PATH_INFO"]]()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{answer} {os.getpid()}".encode()]
