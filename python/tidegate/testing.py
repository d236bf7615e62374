"""For tests of code that uses a gate."""

from tidegate._native import ManualClock

__all__ = ["ManualClock"]
