"""A load shedder: a lock-free admission gate with priorities in front of a database.

    from tidegate import Gate, Shed

    gate = Gate("db", limit=20)

    with gate:                        # raises Shed at once when the gate is full
        rows = connection.execute(query)

The limit is per process. See the README for how to choose one, and ``tidegate demo`` for what it does.
"""

from collections.abc import Mapping as _Mapping

# The first two are for native code, which must not be the one to import them: an import in the middle of a
# drain lets in signal handlers that drain, too, and a fork that finds it half done.
from tidegate import _drain as _drain
from tidegate import _guard as _guard
from tidegate._context import use_priority
from tidegate._errors import ConfigError, Problem, Shed, TidegateError
from tidegate._names import EventKind, Outcome, Priority, Reason
from tidegate._native import (
    Admission,
    Change,
    Classifier,
    ControllerReport,
    Event,
    Explanation,
    Gate,
    Gates,
    LimitChange,
    Permit,
    Pressure,
    Signal,
    SignalReport,
    Stats,
    Subscription,
    Transition,
    Window,
    load,
)

# A native class is no subclass of one in Python.
_Mapping.register(Gates)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]

__version__ = "0.1.0"

__all__ = [
    "Admission",
    "Change",
    "Classifier",
    "ConfigError",
    "ControllerReport",
    "Event",
    "EventKind",
    "Explanation",
    "Gate",
    "Gates",
    "LimitChange",
    "Outcome",
    "Permit",
    "Pressure",
    "Priority",
    "Problem",
    "Reason",
    "Shed",
    "Signal",
    "SignalReport",
    "Stats",
    "Subscription",
    "TidegateError",
    "Transition",
    "Window",
    "load",
    "use_priority",
]
