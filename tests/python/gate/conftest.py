"""Fixtures of the gate's tests."""

from __future__ import annotations

import pytest
from tidegate import Gate


@pytest.fixture
def gate() -> Gate:
    """One at a time, so that a lost or invented place shows at once."""
    return Gate("db", limit=1)
