"""Draining under an event loop."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate._native import Gate


def _loop() -> str | None:
    """Which event loop runs in this thread. One whose library was never imported does not."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return "asyncio"
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return "trio"
    return None


def refuse_in_event_loop() -> None:
    """RuntimeError where a blocking drain would stop the loop that is to release the permits."""
    if _loop() is not None:
        raise RuntimeError("drain() would block the running event loop; await drain_async() instead")


async def drain_async(gate: Gate, timeout: float | None) -> bool:  # noqa: ASYNC109 - drain()'s argument
    """Close the gate and wait until everything inside has left; whether it has."""
    loop = _loop()
    if loop is None:
        raise RuntimeError("drain_async() needs a running asyncio or trio event loop")
    event, soon, over, within = _asyncio_parts() if loop == "asyncio" else _trio_parts()
    drained = False

    def wake() -> None:
        nonlocal drained
        drained = True
        try:
            soon(event.set)
        except over:
            pass  # the loop ended meanwhile: nobody waits any more

    waiting = gate._on_drained(wake)
    try:
        await within(event, timeout)
    finally:
        gate._forget_drained(waiting)
    # Not whether the wait ended in time: it may have drained at this moment, or before a timeout of 0.
    return drained


# An event of the loop's, how another thread has the loop call something, what that raises once the loop has
# ended, and how to wait for the event.
_Within = Callable[[Any, float | None], Awaitable[None]]
_Parts = tuple[Any, Callable[[Callable[[], object]], object], type[Exception], _Within]


def _asyncio_parts() -> _Parts:
    import asyncio

    async def within(event: asyncio.Event, timeout: float | None) -> None:  # noqa: ASYNC109
        try:
            # Not wait_for, which before 3.12 can swallow a cancellation.
            async with asyncio.timeout(timeout):
                await event.wait()
        except TimeoutError:
            pass

    return asyncio.Event(), asyncio.get_running_loop().call_soon_threadsafe, RuntimeError, within


def _trio_parts() -> _Parts:
    trio: Any = sys.modules["trio"]

    async def within(event: Any, timeout: float | None) -> None:  # noqa: ASYNC109
        with trio.move_on_after(float("inf") if timeout is None else timeout):
            await event.wait()

    return trio.Event(), trio.lowlevel.current_trio_token().run_sync_soon, trio.RunFinishedError, within
