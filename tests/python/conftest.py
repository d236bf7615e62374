"""Fixtures of all tests."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator

import pytest


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
