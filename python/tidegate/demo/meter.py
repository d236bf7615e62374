"""What the database can do when nobody queues, as a process: `python -m tidegate.demo.meter`.

The first line read is its job, the first one written is `ready`. After that each line `WORKERS SECONDS` is a
closed loop: that many threads, each asking again as soon as it is answered. The answer is `PER_S SERVICE_MS`:
answers per second, and the median time of one in milliseconds. End of input ends the process.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import threading
import time

from tidegate.demo.chatbot import Chatbot
from tidegate.demo.corpus import CONVERSATIONS
from tidegate.demo.database import open_database
from tidegate.demo.job import Job, make_way


def closed_loop(job: Job, workers: int, seconds: float) -> tuple[float, float]:
    """Run `workers` threads for `seconds`: answers per second, and the median time of one in seconds."""
    database = open_database(job.database)
    conversations = itertools.cycle(range(CONVERSATIONS))
    durations: list[float] = []
    ready = threading.Barrier(workers + 1)

    def work() -> None:
        make_way()
        bot = Chatbot(database.connect(), job.depth)
        bot.warm_up()
        ready.wait()
        end = time.perf_counter() + seconds
        while (before := time.perf_counter()) < end:
            bot.answer(next(conversations))
            durations.append(time.perf_counter() - before)
        bot.connection.close()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    # Until the last answer, not until the bell: the answers under way at the bell are counted too.
    return len(durations) / (time.perf_counter() - start), statistics.median(durations)


def main() -> None:
    """Measure what is asked for until the input ends."""
    order = sys.stdin.buffer.readline()
    if not order:  # interrupted before there was anything to do
        return
    job = Job.parse(order)
    threading.excepthook = _end
    print("ready", flush=True)
    for line in sys.stdin.buffer:
        workers, seconds = line.split()
        per_s, service = closed_loop(job, int(workers), float(seconds))
        print(f"{per_s:.3f} {service * 1000:.3f}", flush=True)


def _end(failed: threading.ExceptHookArgs) -> None:
    """A thread that fails takes the process with it; the others would wait for it for ever."""
    threading.__excepthook__(failed)
    os._exit(1)


if __name__ == "__main__":
    main()
