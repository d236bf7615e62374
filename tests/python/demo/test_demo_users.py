from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest
import virtual_time
from tidegate.demo.arrivals import Arrival, populate
from tidegate.demo.child import Child, ChildError
from tidegate.demo.users import Attempt, Outcome, play, retry_at

USER = Arrival(at=0.0, conversation=7, essential=True, pauses=(0.1, 0.5))


def test_who_waited_in_vain_tries_again_twice_at_most() -> None:
    assert retry_at(USER, 1, 2.0, Outcome.LATE, patience=1.0, window=10.0) == pytest.approx(3.1)
    assert retry_at(USER, 2, 3.1, Outcome.LATE, patience=1.0, window=10.0) == pytest.approx(4.6)
    assert retry_at(USER, 3, 4.6, Outcome.LATE, patience=1.0, window=10.0) is None


@pytest.mark.parametrize("outcome", [Outcome.GOOD, Outcome.SHED])
def test_who_has_an_answer_does_not_try_again(outcome: Outcome) -> None:
    assert retry_at(USER, 1, 2.0, outcome, patience=1.0, window=10.0) is None


def test_nobody_starts_anything_after_the_window() -> None:
    assert retry_at(USER, 1, 9.0, Outcome.LATE, patience=1.0, window=10.0) is None


class Backend:
    """Answers each request after a time (None: never), as `replies` says, in order of arrival."""

    def __init__(
        self, replies: list[tuple[float | None, bytes]], otherwise: tuple[float | None, bytes]
    ) -> None:
        self._replies = replies
        self._otherwise = otherwise
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.requests: list[tuple[float, bytes]] = []

    def send(self, line: bytes) -> None:
        loop = asyncio.get_running_loop()
        self.requests.append((loop.time(), line))
        after, answer = self._replies.pop(0) if self._replies else self._otherwise
        if after is not None:
            loop.call_later(after, self._lines.put_nowait, line.split()[0] + b" " + answer)

    async def receive(self) -> bytes:
        return await self._lines.get()


def played(backend: Backend, users: list[Arrival], window: float) -> list[Attempt]:
    async def main() -> list[Attempt]:
        return await play(cast(Child, backend), users, window, patience=1.0)

    return virtual_time.run(main())


def test_a_good_answer_a_shed_and_a_user_who_gives_up() -> None:
    backend = Backend([(0.25, b"ok"), (0.0, b"shed"), (None, b"")], otherwise=(None, b""))
    users = [Arrival(at, 7, False, ()) for at in (0.0, 0.5, 1.0)]
    attempts = played(backend, users, window=2.0)
    assert [(a.outcome, round(a.latency, 6), round(a.ended, 6)) for a in attempts] == [
        (Outcome.GOOD, 0.25, 0.25),
        (Outcome.SHED, 0.0, 0.5),
        (Outcome.LATE, 1.0, 2.0),
    ]
    assert [line for _, line in backend.requests] == [b"0 7 0", b"1 7 0", b"2 7 0"]


def test_an_answer_after_giving_up_is_nobodys() -> None:
    backend = Backend([(1.05, b"ok")], otherwise=(0.25, b"ok"))
    attempts = played(backend, [USER], window=3.0)
    # The late answer comes before the retry is answered, and must not be taken for its answer.
    assert [(a.outcome, round(a.latency, 6)) for a in attempts] == [(Outcome.LATE, 1.0), (Outcome.GOOD, 0.25)]
    assert all(attempt.essential for attempt in attempts)


def test_retries_start_when_their_user_meant_to() -> None:
    backend = Backend([], otherwise=(None, b""))
    attempts = played(backend, [USER], window=10.0)
    started = [at - backend.requests[0][0] for at, _ in backend.requests]
    assert started == pytest.approx([0.0, 1.1, 2.6])
    assert [attempt.outcome for attempt in attempts] == [Outcome.LATE] * 3


def test_the_schedule_waits_for_nobodys_answer() -> None:
    users = populate([n / 100 for n in range(500)], random.Random(1))
    backend = Backend([], otherwise=(None, b""))
    attempts = played(backend, users, window=5.0)
    first, _ = backend.requests[0]
    sent = [at - first for at, _ in backend.requests]
    for user in users:
        assert any(at == pytest.approx(user.at) for at in sent)
    assert len(attempts) == len(sent) > len(users)
    assert max(attempt.lag for attempt in attempts) < 1e-9


def test_a_backend_that_dies_ends_the_window_with_an_error() -> None:
    class Dead(Backend):
        async def receive(self) -> bytes:
            raise ChildError("the backend process ended unexpectedly")

    with pytest.raises(ChildError):
        played(Dead([], otherwise=(None, b"")), [USER], window=1.0)
