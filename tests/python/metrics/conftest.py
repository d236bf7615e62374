"""The tests of metrics use what the tests of the gate use, too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

sys.path.append(str(Path(__file__).parents[1] / "gate"))  # for gatekit

MEMORY = Path("/dev/shm")


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where gates are published that are made from here on: in memory, where there is a place for that."""
    with TemporaryDirectory(prefix="tidegate-", dir=MEMORY if MEMORY.is_dir() else None) as path:
        monkeypatch.setenv("TIDEGATE_METRICS_DIR", path)
        yield Path(path)


@pytest.fixture
def unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_METRICS_DIR", raising=False)
