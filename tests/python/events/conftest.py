"""Fixtures of the tests of events, logs and OpenTelemetry."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.with_name("gate")))  # gatekit


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What Python was told of instead of a caller: pairs of the exception and where it came from."""
    reports: list[Any] = []
    monkeypatch.setattr(
        sys, "unraisablehook", lambda report: reports.append((report.exc_value, report.object))
    )
    return reports
