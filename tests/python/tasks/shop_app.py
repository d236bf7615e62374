"""The app of a worker that forks: its gates are each child's own."""

import os
import signal
import time
from typing import Any

from celery import Celery
from tidegate import Gate
from tidegate._held import check_out
from tidegate.celery import GatedTask

socket = os.environ["SHOP_REDIS"]
app = Celery("shop", broker=f"redis+socket://{socket}", backend=f"redis+socket://{socket}?virtual_host=1")
app.conf.update(broker_connection_retry_on_startup=True, worker_prefetch_multiplier=1)

gate, pool = Gate("tasks", limit=1), Gate("pool", limit=1)


@app.task(base=GatedTask, gate=gate)
def look() -> tuple[int, int, dict[str, int], int]:
    """The child, what is in flight in it, what its tasks came to, and its room."""
    room = 0 if gate.try_admit() else 1
    return os.getpid(), gate.in_flight, {str(key): n for key, n in gate.stats().released.items()}, room


@app.task(base=GatedTask, gate=gate, bind=True)
def shed_once(self: Any) -> int:
    """Finds the pool full at the first try."""
    held = pool.try_admit() if self.request.retries == 0 else None
    try:
        check_out(pool).leave()
    finally:
        if held:
            held.release()
    return self.request.retries


@app.task(base=GatedTask, gate=gate, soft_time_limit=1)
def slow() -> None:
    """Takes too long."""
    time.sleep(60)


@app.task(base=GatedTask, gate=gate)
def die() -> None:
    """Takes its child with it."""
    os.kill(os.getpid(), signal.SIGKILL)
