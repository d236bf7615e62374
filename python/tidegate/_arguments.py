"""Checks of what integrations are given."""

from __future__ import annotations

from tidegate._native import Gate


def check_gate(gate: object) -> None:
    """Raise a TypeError for what is no gate, such as the application where arguments were exchanged."""
    if not isinstance(gate, Gate):
        raise TypeError(f"gate must be a Gate, got {gate!r} ({type(gate).__name__})")
