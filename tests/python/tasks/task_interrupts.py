"""Interrupts at random moments of a task, as soft time limits are: `python task_interrupts.py ROUNDS SEED`

Prints JSON: how many rounds were interrupted, and how many permits were left over.
"""

import gc
import json
import random
import signal
import statistics
import sys
import time
import warnings
from types import FrameType

from celery import Celery
from celery.exceptions import SoftTimeLimitExceeded
from tidegate import Gate
from tidegate._held import check_out
from tidegate.celery import GatedTask

app, gate = Celery("shop", broker="memory://"), Gate("tasks", limit=2)
armed = False


@app.task(base=GatedTask, gate=gate)
def work() -> None:
    """Checks out what its permit covers."""
    check_out(gate).leave()


def ring(_signal: int, _frame: FrameType | None) -> None:
    global armed
    if armed:
        armed = False
        raise SoftTimeLimitExceeded


def interrupts(span: float, chance: random.Random) -> bool:
    """Whether the signal met the task."""
    global armed
    signal.setitimer(signal.ITIMER_REAL, max(1e-6, chance.uniform(0, span)))
    try:
        armed = True
        work()
        armed = False
    except SoftTimeLimitExceeded:
        return True
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False


def seconds() -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Storm, and print what is left."""
    rounds, chance = int(sys.argv[1]), random.Random(int(sys.argv[2]))
    warnings.simplefilter("ignore")  # of what is collected
    sys.unraisablehook = lambda _: None  # interrupts in finalizers
    signal.signal(signal.SIGALRM, ring)
    seconds()
    span = 1.1 * statistics.median(seconds() for _ in range(20))
    interrupted = left = 0
    for _ in range(rounds):
        interrupted += interrupts(span, chance)
        if gate.in_flight:
            gc.collect()
            left += gate.in_flight
    print(json.dumps({"interrupted": interrupted, "left": left}))


if __name__ == "__main__":
    main()
