"""Targets whose work is done in this process, in threads: what they have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class Here:
    """A target that works in threads.

    Args:
        threads: How many.
        prepare_thread: Called first in each.
    """

    def __init__(self, threads: int, prepare_thread: Callable[[], None]) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "target", prepare_thread)

    async def open(self) -> None:
        """Get ready."""

    async def ask(self, number: int) -> str | None:
        """One request."""
        raise NotImplementedError

    async def idle(self) -> str | None:
        """A request that asks for nothing, to see what asking costs."""
        await self._in_thread(lambda: None)
        return None

    async def close(self) -> None:
        """Give everything back."""

    @property
    def most_in_flight(self) -> int | None:
        """How many it can be asked at a time."""
        return self._threads

    def describe(self) -> Mapping[str, str]:
        """What it is."""
        raise NotImplementedError

    async def _in_thread(
        self, work: Callable[..., Any], *arguments: Any, on_cancel: Callable[[], object] = lambda: None
    ) -> Any:
        """Run `work` in a thread; cancelled, call `on_cancel` and still wait for its end."""
        running = asyncio.wrap_future(self._pool.submit(work, *arguments))
        cancelled = None
        while not running.done():
            try:
                await asyncio.wait((running,))
            except asyncio.CancelledError as error:
                cancelled = error
                on_cancel()
        if cancelled is not None:
            running.exception()  # nobody asks any more
            raise cancelled
        return running.result()

    def _end_threads(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
