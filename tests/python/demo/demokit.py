"""The demo as a process, and who of it is alive."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "tidegate.cli", "demo"]

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs /proc to see other processes"
)


def start(temporary: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """The demo, with a temporary folder of its own."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary), **environment},
    )


def processes(temporary: Path) -> list[str]:
    """Every living process that knows this temporary folder: the demo, its children, its server."""
    found: list[str] = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                # A zombie's is empty. PostgreSQL writes over its own, but works inside the folder.
                known = (process / "environ").read_bytes() + os.fsencode((process / "cwd").readlink())
            except OSError:  # it has just ended
                continue
            if os.fsencode(temporary) in known:
                found.append(process.name)
    return found


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
