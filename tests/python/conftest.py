"""Fixtures of all tests."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterator

import pytest

# A job in the background (`make test &` of a script) is started with interrupts ignored, and so is all that
# it starts: no Ctrl-C would be tested. A handler of Python's is none of what children inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def seed() -> int:
    """Printed where a test fails; TIDEGATE_SEED repeats that run."""
    seed = int(os.environ.get("TIDEGATE_SEED", random.randrange(2**32)))
    print(f"TIDEGATE_SEED={seed}")
    return seed


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as the interpreter lets them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
