"""Numbers as people read them. Pure, and ASCII."""

from __future__ import annotations

NOTHING = "-"


def number(value: float | None) -> str:
    """With about three digits that count: 1234, 56.7, 8.90."""
    if value is None:
        return NOTHING
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def percent(value: float | None) -> str:
    """Of 100, with one decimal, but neither 0 nor 100 unless it is exactly that."""
    if value is None:
        return NOTHING
    if value in (0.0, 100.0):
        return f"{value:.0f} %"
    if 0 < value < 100:
        value = min(99.9, max(0.1, value))
    return f"{value:.1f} %"
