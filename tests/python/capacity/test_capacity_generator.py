"""The load generator, on targets that are known and in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable

import pytest
import virtual_time
from capacitykit import Known
from tidegate.capacity.generator import Generator, Now, Played
from tidegate.capacity.target import TargetError


def play(
    target: Known,
    *,
    times: Iterable[float] | None = None,
    limit: int | None = None,
    warm_up: float = 0.0,
    seconds: float = 10.0,
    timeout: float = 5.0,
    most: int = 1000,
    max_rate: float | None = None,
    watch: Callable[[Now], str | None] = lambda _now: None,
) -> Played:
    async def main() -> Played:
        generator = Generator(target, timeout, most, max_rate)
        return await generator.play(warm_up=warm_up, seconds=seconds, times=times, limit=limit, watch=watch)

    played = virtual_time.run(main())
    assert target.in_flight == 0
    return played


def every(gap: float, count: int) -> list[float]:
    return [gap * number for number in range(count)]


def test_the_schedule_is_kept_whatever_the_target_does() -> None:
    slow = Known(lambda _number, _in_flight: 100.0)
    played = play(slow, times=every(0.5, 20))
    first = slow.began[0]
    assert [at - first for at in slow.began] == pytest.approx(every(0.5, 20), abs=0.002)
    assert (played.counts.offered, played.counts.late, played.counts.good) == (20, 20, 0)
    # Each was in flight for five seconds, and they came two a second.
    assert played.most_in_flight in (10, 11)
    assert slow.withdrawn == 20


def test_what_began_while_warming_up_does_not_count() -> None:
    played = play(Known(lambda *_: 1.0), times=every(0.5, 20), warm_up=4.0, seconds=6.0)
    assert played.counts.offered == played.counts.good == 12
    assert played.seconds == pytest.approx(6.0, abs=0.01)
    assert len(played.latencies) == 12
    assert played.latencies == pytest.approx([1.0] * 12, abs=0.01)
    assert played.in_flight == pytest.approx(2.0, abs=0.05)


def test_a_closed_loop_keeps_as_many_in_flight_as_the_limit_says() -> None:
    target = Known(lambda number, _in_flight: 0.5 + number % 7 / 10)
    played = play(target, limit=3, warm_up=1.0, seconds=50.0)
    assert (target.most, played.most_in_flight) == (3, 3)
    assert played.in_flight == pytest.approx(3.0, rel=0.001)
    # Little: 3 at a time, 0.8 s each on average.
    assert played.counts.good / played.seconds == pytest.approx(3 / 0.8, rel=0.05)
    assert played.counts.offered == played.counts.good
    assert played.counts.shed == 0


def test_a_closed_loop_keeps_to_the_rate_that_is_allowed() -> None:
    target = Known(lambda *_: 0.1)
    played = play(target, limit=8, seconds=50.0, max_rate=4.0)
    gaps = [after - before for before, after in itertools.pairwise(target.began)]
    assert min(gaps) >= 0.25 - 1e-5
    assert played.counts.offered == played.counts.good == pytest.approx(200, abs=3)
    slow = play(Known(lambda *_: 4.0), limit=8, seconds=50.0, max_rate=4.0)
    assert slow.in_flight == pytest.approx(8.0, rel=0.05), "it has time enough to fill the gate"


def test_a_gate_sheds_what_is_more_than_its_limit() -> None:
    target = Known(lambda *_: 0.95)
    played = play(target, times=every(0.25, 40), limit=2)
    assert target.most == 2
    assert played.counts.shed == played.counts.offered - played.counts.good
    assert played.counts.good == len(target.asked) == 20
    assert played.counts.late == 0


def test_those_that_wait_for_the_gate_are_counted_from_when_they_were_meant_to_be_sent() -> None:
    # The target keeps the event loop for a second: what was meant for that time is sent late, and says so.
    hogged = Known(lambda *_: 0.1)
    ask = hogged.ask

    async def hog(number: int) -> str | None:
        if number == 3:
            loop = asyncio.get_running_loop()
            loop._jumping.now += 1.0
        return await ask(number)

    hogged.ask = hog  # type: ignore[method-assign]
    played = play(hogged, times=every(0.2, 20))
    assert played.lag > 0.5
    # The one that kept it, and those that were meant for that second: 0.8 s late, 0.6 s, 0.4 s and 0.2 s.
    assert played.latencies[-5:] == pytest.approx([0.3, 0.5, 0.7, 0.9, 1.1], abs=0.03)
    assert played.counts.good == 20


def test_users_wait_no_longer_because_this_process_was_late() -> None:
    hogged = Known(lambda *_: 0.1)
    ask = hogged.ask

    async def hog(number: int) -> str | None:
        if number == 3:
            loop = asyncio.get_running_loop()
            loop._jumping.now += 1.0
        return await ask(number)

    hogged.ask = hog  # type: ignore[method-assign]
    played = play(hogged, times=every(0.2, 20), timeout=0.9)
    # Meant for 0.6 and 0.8 s, and sent at about 1.6 s: too late already, or 0.1 s later.
    assert played.counts.late == 2
    assert played.counts.good == 18


def test_failures_are_told_apart() -> None:
    kinds = {0: "HTTP 500", 1: "HTTP 500", 2: "connection refused"}
    played = play(Known(lambda *_: 0.1, lambda number: kinds.get(number)), times=every(0.1, 10))
    assert (played.counts.failed, played.counts.good) == (3, 7)
    assert list(played.failures.items()) == [("HTTP 500", 2), ("connection refused", 1)]


def test_the_watch_ends_a_step_and_takes_back_what_is_in_flight() -> None:
    target = Known(lambda *_: 3.0)
    played = play(target, times=every(0.1, 100), watch=lambda now: "enough" if now.in_flight >= 10 else None)
    counts = played.counts
    assert played.stopped == "enough"
    assert counts.offered < 15
    assert counts.good == counts.late == counts.failed == 0
    assert target.withdrawn == counts.offered
    assert played.seconds < 2
    assert played.in_flight > 1


@pytest.mark.parametrize("most", [1000, 10])
def test_nothing_is_sent_after_a_step_was_ended(most: int) -> None:
    deaf = Known(lambda *_: 3.0, heeds=False)
    played = play(
        deaf,
        times=every(0.1, 100),
        most=most,
        watch=lambda now: "enough" if now.in_flight >= 10 else None,
    )
    assert played.stopped is not None
    assert len(deaf.asked) <= 12
    assert played.counts.offered <= 12
    assert played.counts.late == 0


def test_no_more_than_allowed_are_in_flight() -> None:
    target = Known(lambda *_: 3.0)
    played = play(target, times=every(0.1, 100), most=7)
    assert target.most == 7
    assert played.capped
    assert played.stopped is not None
    assert "7" in played.stopped


def test_what_is_given_up_on_stays_in_flight_until_it_ends() -> None:
    deaf = Known(lambda *_: 3.0, heeds=False)
    played = play(deaf, times=[0.0, 0.1], seconds=2.0, timeout=1.0)
    assert (played.counts.late, played.counts.good) == (2, 0)
    assert played.in_flight == pytest.approx(2.0, abs=0.1)


def test_what_fails_after_it_was_given_up_on_is_late_and_no_failure() -> None:
    deaf = Known(lambda *_: 3.0, lambda _number: "HTTP 500", heeds=False)
    played = play(deaf, times=[0.0, 0.1], seconds=2.0, timeout=1.0)
    assert (played.counts.late, played.counts.failed, played.failures) == (2, 0, {})


def test_what_never_ends_is_said() -> None:
    with pytest.raises(TargetError, match="2 that were given up on still run"):
        play_deaf = Known(lambda *_: 1e6, heeds=False)
        play(play_deaf, times=[0.0, 0.1], seconds=2.0, timeout=1.0)


def test_a_target_that_breaks_ends_the_step() -> None:
    target = Known(lambda *_: 0.1)

    async def broken(_number: int) -> str | None:
        raise TargetError("it is gone")

    target.ask = broken  # type: ignore[method-assign]
    with pytest.raises(TargetError, match="it is gone"):
        play(target, times=every(0.1, 100))


def test_numbers_go_on_from_step_to_step() -> None:
    target = Known(lambda *_: 0.1)

    async def main() -> None:
        generator = Generator(target, 1.0, 10)
        for _ in range(2):
            await generator.play(warm_up=0, seconds=1, times=[0.0, 0.5], limit=None, watch=lambda _now: None)

    virtual_time.run(main())
    assert target.asked == [0, 1, 2, 3]


@pytest.mark.parametrize("turns", range(12))
def test_whoever_is_interrupted_at_any_moment_leaves_nothing_running(turns: int) -> None:
    target = Known(lambda *_: 0.005)

    async def main() -> None:
        generator = Generator(target, 1.0, 10)
        step = asyncio.create_task(
            generator.play(warm_up=0, seconds=10, times=None, limit=3, watch=lambda _now: None)
        )
        for _ in range(turns):
            await asyncio.sleep(0.003 if turns % 2 else 0)
        step.cancel()
        await asyncio.wait((step,))
        asked = len(target.asked)
        await asyncio.sleep(1.0)
        assert len(target.asked) == asked
        assert target.in_flight == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtual_time.run(main())
