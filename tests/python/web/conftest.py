"""The tests of the edges use what the tests of the gate use, too."""

import os
import random
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "gate"))  # for gatekit


@pytest.fixture
def seed() -> int:
    """Printed where a test fails; TIDEGATE_SEED repeats that run."""
    seed = int(os.environ.get("TIDEGATE_SEED", random.randrange(2**32)))
    print(f"TIDEGATE_SEED={seed}")
    return seed
