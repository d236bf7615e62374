"""Targets that are known to the last detail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping


class Known:
    """Answers each request after the seconds that `service` says for its number and those in flight."""

    def __init__(
        self,
        service: Callable[[int, int], float],
        fails: Callable[[int], str | None] = lambda _number: None,
        *,
        heeds: bool = True,
    ) -> None:
        self.in_flight = 0
        self.most = 0
        self.asked: list[int] = []
        self.began: list[float] = []
        self.withdrawn = 0
        self.opened = self.closed = False
        self._service = service
        self._fails = fails
        self._heeds = heeds

    async def open(self) -> None:
        self.opened = True

    async def ask(self, number: int) -> str | None:
        self.asked.append(number)
        self.began.append(asyncio.get_running_loop().time())
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        work = asyncio.ensure_future(asyncio.sleep(self._service(number, self.in_flight)))
        try:
            while not work.done():
                try:
                    await asyncio.wait((work,))
                except asyncio.CancelledError:
                    self.withdrawn += 1
                    if self._heeds:
                        work.cancel()
                        raise
        finally:
            self.in_flight -= 1
        return self._fails(number)

    async def close(self) -> None:
        self.closed = True

    @property
    def most_in_flight(self) -> int | None:
        return None

    @property
    def overhead(self) -> float:
        return 0.0

    def describe(self) -> Mapping[str, str]:
        return {"kind": "function", "function": "known:ask"}
