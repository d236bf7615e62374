"""Draining under an event loop."""

from __future__ import annotations

import sys
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
    return await (_on_trio if loop == "trio" else _on_asyncio)(gate, timeout)


async def _on_asyncio(gate: Gate, timeout: float | None) -> bool:  # noqa: ASYNC109
    import asyncio

    loop = asyncio.get_running_loop()
    drained = False
    woken = asyncio.Event()

    def wake() -> None:
        nonlocal drained
        drained = True
        try:
            loop.call_soon_threadsafe(woken.set)
        except RuntimeError:
            pass  # the loop was closed meanwhile: nobody waits any more

    waiting = gate._on_drained(wake)
    try:
        # Not wait_for, which before 3.12 can swallow a cancellation.
        async with asyncio.timeout(timeout):
            await woken.wait()
    except TimeoutError:
        pass  # it may have drained all the same: at this moment, or before a timeout of 0
    finally:
        gate._forget_drained(waiting)
    return drained


async def _on_trio(gate: Gate, timeout: float | None) -> bool:  # noqa: ASYNC109
    trio: Any = sys.modules["trio"]
    token = trio.lowlevel.current_trio_token()
    drained = False
    woken = trio.Event()

    def wake() -> None:
        nonlocal drained
        drained = True
        try:
            token.run_sync_soon(woken.set)
        except trio.RunFinishedError:
            pass  # as above

    waiting = gate._on_drained(wake)
    try:
        with trio.move_on_after(float("inf") if timeout is None else timeout):
            await woken.wait()
    finally:
        gate._forget_drained(waiting)
    return drained
