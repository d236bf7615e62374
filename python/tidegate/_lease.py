"""What a pool hook keeps beside a connection while it is checked out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tidegate._native import Hold


class Lease:
    """The hold of one connection, from its checkout to its return, and what its work came to.

    Whoever returns a connection does not say how the work on it went, so errors are noted when they occur.
    At the return the hook calls ``lease.hold.leave(lease.outcome)``: that, and no method of this class,
    since an interrupt may strike at the start of any Python function, and here it would keep the permit.

    Args:
        hold: Of the request's permit. It is the lease's from here on.
    """

    __slots__ = ("hold", "outcome")

    outcome: Literal["success", "ignore"]

    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        self.outcome = "success"

    def note(self, error: BaseException) -> None:
        """The work on the connection ended in this error. The permit stays until the return."""
        further = self.hold.join()
        if further is not None:
            # The first hold leaves with what the error means, and the one that stays has nothing to add.
            before, self.hold, self.outcome = self.hold, further, "ignore"
            before.end(error)
