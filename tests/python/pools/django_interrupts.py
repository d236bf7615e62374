"""Interrupts at random moments of Django's connecting and closing: `python django_interrupts.py FILE SEED`

A real signal raises KeyboardInterrupt wherever the thread is just then; the end of the request follows, as a
server has it. Prints what was left as JSON.
"""

from __future__ import annotations

import gc
import json
import random
import signal
import sys
import time
import warnings

import django
from django.conf import settings

settings.configure(
    DATABASES={
        "default": {"ENGINE": "tidegate.django.sqlite3", "NAME": sys.argv[1], "TIDEGATE": {"limit": 2}}
    }
)
django.setup()

from django.db import close_old_connections, connection  # noqa: E402
from tidegate.django import database_gate  # noqa: E402

ENOUGH = 250  # interrupts
SECONDS = 10.0  # or this long


def main() -> None:
    warnings.simplefilter("ignore")  # a permit that is collected warns
    sys.unraisablehook = lambda _: None  # an interrupt in a finalizer is none
    gate, moments = database_gate(), random.Random(sys.argv[2])
    armed, interrupted = False, 0

    def interrupt(*_: object) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    until = time.monotonic() + SECONDS
    while interrupted < ENOUGH and time.monotonic() < until:
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-6, 400e-6))
            connection.ensure_connection()
            connection.close()
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            armed = False
        close_old_connections()
    gc.collect()
    in_flight = gate.in_flight
    permits = [gate.try_admit() for _ in range(3)]
    whole = all(permits[:2]) and permits[2] is None
    print(json.dumps({"interrupted": interrupted, "in_flight": in_flight, "whole": whole}))


if __name__ == "__main__":
    main()
