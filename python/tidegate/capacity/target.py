"""What is tested. Each kind of target is a module that asks it one thing, and says why it did not answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class TargetError(Exception):
    """The target cannot be tested. The message says what was seen and what to do."""


class Target(Protocol):
    """Something that answers requests, as many at a time as are asked."""

    async def open(self) -> None:
        """Get ready, and try what can be tried without a request.

        Raises:
            TargetError: It cannot be tested.
        """
        ...

    async def ask(self, number: int) -> str | None:
        """One request, the one with this number. Cancelled, it withdraws the request where that can be done.

        It ends when the target has ended its work, also after a cancellation; only then is it out of flight.

        Returns:
            None for a good answer, or in few words how it failed.
        """
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...

    @property
    def most_in_flight(self) -> int | None:
        """How many it can be asked at a time, known once it is open. None: no bound is known."""
        ...

    @property
    def overhead(self) -> float:
        """What a request costs that asks for nothing, in seconds; 0 where that is not known."""
        ...

    def describe(self) -> Mapping[str, str]:
        """What it is, for people and for the journal: names and values, without secrets."""
        ...


def as_target_error(error: BaseException) -> TargetError:
    """What a request should not have ended with."""
    if isinstance(error, TargetError):
        return error
    return TargetError(f"A request could not be made: {in_few_words(error)}. Check what it is made from.")


def in_few_words(error: BaseException) -> str:
    """An exception as a kind of failure: its class, and the first line that it says."""
    said = str(error).strip().partition("\n")[0].strip()
    name = type(error).__name__
    return f"{name}: {said}"[:200] if said else name
