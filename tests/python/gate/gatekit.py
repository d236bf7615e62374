"""What several tests of the gate need: counts, threads that start together, children, fresh interpreters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidegate import Gate, Priority, Reason, Stats

REPOSITORY = Path(__file__).parents[3]
PATIENCE = 30.0  # seconds, for what takes milliseconds: reaching it is a failure, never a measurement


def admitted(stats: Stats) -> int:
    return sum(stats.admitted.values())


def shed(stats: Stats, reason: Reason | str | None = None) -> int:
    by_reason = stats.shed.values()
    return sum(n for reasons in by_reason for key, n in reasons.items() if reason in (None, key))


def would_shed(stats: Stats) -> int:
    return sum(stats.would_shed.values())


def released(stats: Stats) -> dict[str, int]:
    """The outcomes that occurred."""
    return {str(outcome): n for outcome, n in stats.released.items() if n}


def shown(value: object) -> str:
    """A test's name for a value, also for an int that Python refuses to print."""
    try:
        return ascii(value)[:40]
    except ValueError:
        return "an int too large to print"


def assert_at_rest(gate: Gate) -> None:
    """Nobody is inside, everybody who entered has left, and there is room for exactly the limit again."""
    before = gate.stats()
    assert (before.in_flight, before.over_in_flight, before.unmatched_exits) == (0, 0, 0)
    assert admitted(before) == sum(before.released.values())
    if before.limit <= 1_000 and gate.enforce and not gate.closed:
        permits = [gate.try_admit(priority=Priority.CRITICAL_PLUS) for _ in range(before.limit)]
        assert all(permits), "room was lost"
        assert gate.try_admit(priority=Priority.CRITICAL_PLUS) is None, "room was made"
        for permit in permits:
            permit.release()
        assert gate.in_flight == 0


def together(*functions: Callable[[], Any]) -> list[Any]:
    """What each function returns, run in a thread of its own, all of them let go at once."""
    barrier = threading.Barrier(len(functions))
    results: list[Any] = [None] * len(functions)
    errors: list[BaseException] = []

    def run(at: int, function: Callable[[], Any]) -> None:
        try:
            barrier.wait(PATIENCE)
            results[at] = function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=each) for each in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def in_thread(function: Callable[[], Any]) -> Any:
    return together(function)[0]


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread is about to do."""
    tick = threading.Event()
    for _ in range(int(PATIENCE * 1_000)):
        if condition():
            return
        tick.wait(0.001)
    raise AssertionError("it did not happen")


def in_child(function: Callable[[], Any]) -> Any:
    """What the function returns, as JSON has it, in a forked child."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(writing, json.dumps(function()).encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, "the child failed: see its traceback above"
    return json.loads(answer)


def python(code: str, *options: str, interpreter: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh interpreter, on the package as it stands in the repository."""
    return subprocess.run(
        [interpreter, *options, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")},
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        check=False,
    )


def output_of(code: str, *options: str, interpreter: str = sys.executable) -> str:
    """What a script prints that ends well and complains of nothing."""
    run = python(code, *options, interpreter=interpreter)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    return run.stdout
