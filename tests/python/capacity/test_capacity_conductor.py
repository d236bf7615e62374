"""Whole runs on targets that are known, in virtual time."""

from __future__ import annotations

import asyncio
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
import virtual_time
from capacitykit import Known
from tidegate.capacity.analysis import Plan, Step
from tidegate.capacity.conductor import Conductor, Found, Load, schedule
from tidegate.capacity.generator import Generator, Now
from tidegate.capacity.journal import Journal, JournalError
from tidegate.capacity.target import Target, TargetError

# Alone it takes 20 ms, and each pair at work costs both: most at about ten at a time.
SIGMA, KAPPA = 0.02, 0.01


def slowdown(n: int) -> float:
    return 1 + SIGMA * (n - 1) + KAPPA * n * (n - 1)


def degrading() -> Known:
    """The time of each is fixed when it begins, which at a constant number in flight is the law exactly."""
    return Known(lambda number, in_flight: 0.02 * slowdown(in_flight) * (0.75 + number % 3 / 4))


class Silent:
    def begin(self, step: Step, remaining: tuple[int, float]) -> None: ...

    def now(self, step: Step, now: Now) -> None: ...


PLAN = Plan(timeout=1.0, stage=5.0, cell=5.0, warm_up=1.0, max_limit=64, before=True)
LOAD = Load(most_in_flight=200, seed=5)


def conduct(target: Target, plan: Plan = PLAN, load: Load = LOAD, journal: Journal | None = None) -> Found:
    conductor = Conductor(target, plan, load, journal or Journal({}), Silent())
    virtual_time.run(conductor.conduct())
    return conductor.found


def broken(target: Target, plan: Plan = PLAN, load: Load = LOAD) -> str:
    with pytest.raises(TargetError) as caught:
        conduct(target, plan, load)
    return str(caught.value)


def goodput(limit: int) -> float:
    async def main() -> float:
        played = await Generator(degrading(), 1.0, 1000).play(
            warm_up=0.5, seconds=6.0, times=None, limit=limit, watch=lambda _now: None
        )
        return played.counts.good / played.seconds

    return virtual_time.run(main())


def test_the_recommended_limit_comes_to_nearly_the_most_that_any_does() -> None:
    target = degrading()
    found = conduct(target)
    recommended = found.search.recommendation()
    assert recommended.limit is not None
    by_limit = {limit: goodput(limit) for limit in range(1, 17)}
    best = max(by_limit.values())
    assert by_limit[recommended.limit] >= 0.95 * best
    assert recommended.limit <= max(by_limit, key=lambda limit: by_limit[limit])
    low, high = recommended.breaking_point
    assert low is not None
    assert high is not None
    assert 0.6 * best < low < high < 1.6 * best
    assert recommended.error_upper is not None
    assert recommended.error_upper < 0.01
    assert target.closed
    phases = [one.step.phase for one in found.taken]
    assert set(phases) == {"baseline", "ramp", "sweep", "before", "proof"}


def test_a_ramp_ends_before_the_first_timeout() -> None:
    found = conduct(degrading())
    ended = [one for one in found.taken if one.played is not None and one.played.stopped is not None]
    assert ended
    for one in ended:
        if one.measured.end == "aborted":
            assert one.measured.late == 0
    assert any(one.measured.end == "aborted" for one in ended)
    # By foresight, and not because no more were allowed in flight.
    assert any(one.step.phase == "ramp" and one.played and not one.played.capped for one in ended)


def test_the_caps_are_kept() -> None:
    target = degrading()
    found = conduct(target, Plan(timeout=1.0, stage=5.0, cell=5.0, warm_up=1.0, max_limit=4, max_rate=60.0))
    assert target.most < 200
    for one in found.taken:
        assert one.step.limit is None or one.step.limit <= 4
        if one.step.phase == "ramp":
            assert one.step.rate is not None
            assert one.step.rate <= 60.0


class File(io.StringIO):
    def close(self) -> None: ...


# --- bad targets -------------------------------------------------------------------------------------


def test_a_first_request_that_fails() -> None:
    target = Known(lambda *_: 0.01, lambda _number: "connection refused")
    assert broken(target) == (
        "The first request failed: connection refused. Nobody listens there: start the service, or check "
        "host and port."
    )
    assert target.asked == [0]
    assert target.closed


def test_a_first_request_that_is_never_answered() -> None:
    target = Known(lambda *_: 1e9)
    assert broken(target).startswith("The first request, alone, had no answer within 1.00 s.")
    assert len(target.asked) == 1


def test_a_target_that_fails_now_and_then() -> None:
    target = Known(lambda *_: 0.02, lambda number: "HTTP 500" if number % 20 == 19 else None)
    said = broken(target)
    assert "requests failed one at a time (HTTP 500: " in said
    assert "it fails now and then without being overloaded" in said
    assert max(target.began) < 10.0


def test_a_target_that_fails_at_the_lowest_rate() -> None:
    target = Known(lambda *_: 0.02, lambda _number: "HTTP 503" if target.in_flight else None)
    said = broken(target)
    assert "requests failed at the lowest rate (HTTP 503" in said
    assert "It turns requests away by itself" in said


class Dying(Known):
    """Gone for good after so many requests, whichever their number."""

    async def ask(self, number: int) -> str | None:
        failed = await super().ask(number)
        return "connection refused" if len(self.asked) > 500 else failed


def test_a_target_that_dies_on_the_way() -> None:
    target = Dying(lambda *_: 0.02)
    said = broken(target)
    assert "one request alone still fails: connection refused" in said or "requests failed" in said
    # The step was ended when most of its requests failed; then it was asked alone until it had had its time.
    sent = [at for at in target.began if at < target.began[500] + 5.0]
    assert len(sent) - 500 < 250


def test_a_target_that_is_too_fast() -> None:
    assert "about as long as this generator takes to send one" in broken(
        Known(lambda *_: 0.0001), Plan(timeout=1.0, stage=1.0, cell=0.3, warm_up=0.1)
    )


class Hogging(Known):
    """Asking takes two milliseconds of the generator's own time: 500 a second are more than it can send."""

    async def ask(self, number: int) -> str | None:
        loop: Any = asyncio.get_running_loop()
        loop._jumping.now += 0.002
        return await super().ask(number)


def test_a_target_that_is_faster_than_the_generator() -> None:
    file = File()
    plan = Plan(timeout=1.0, stage=5.0, cell=2.0, warm_up=1.0, prove=False)
    found = conduct(Hogging(lambda *_: 0.01), plan, journal=Journal({}, file))
    assert found.search.recommendation().breaking_point[1] is None
    [note] = found.notes
    assert "the load generator itself was late" in note
    assert "It holds " in note
    lagged = [one.measured.end == "lagged" for one in found.taken]
    assert sum(lagged) == 1
    # That step was played twice before it was believed, and all others once.
    played = [json.loads(line)["step"]["number"] for line in file.getvalue().splitlines()[1:]]
    assert len(played) == len(set(played)) + 1
    assert played.count(found.taken[lagged.index(True)].step.number) == 2


class Busy(Known):
    """A machine that has something else to do from the thousandth request on, whatever the rate."""

    async def ask(self, number: int) -> str | None:
        if number > 1000:
            loop: Any = asyncio.get_running_loop()
            loop._jumping.now += 0.03
        return await super().ask(number)


def test_a_generator_that_is_late_again_and_again_is_told_of_once() -> None:
    plan = Plan(timeout=1.0, stage=5.0, cell=2.0, warm_up=1.0, prove=False)
    found = conduct(Busy(lambda *_: 0.01), plan)
    assert sum(one.measured.end == "lagged" for one in found.taken) > 1
    [note] = found.notes
    assert "the load generator itself was late" in note


def test_more_in_flight_than_allowed_is_not_the_targets_fault() -> None:
    found = conduct(
        Known(lambda *_: 0.3),
        Plan(timeout=10.0, stage=5.0, cell=5.0, warm_up=1.0, prove=False),
        Load(most_in_flight=5),
    )
    [note] = found.notes
    assert "5 in flight, the most that is allowed" in note


class Metastable(Known):
    """Once it had twenty in flight it stays slow."""

    drowned = False

    def __init__(self) -> None:
        super().__init__(self._time)

    def _time(self, _number: int, in_flight: int) -> float:
        self.drowned = self.drowned or in_flight >= 20
        return 5.0 if self.drowned else 0.02 * slowdown(in_flight)


def test_a_target_that_does_not_recover() -> None:
    said = broken(Metastable())
    assert "still does not answer one request about as fast as before" in said
    assert "--resume" in said


# --- the journal -------------------------------------------------------------------------------------


def recorded() -> tuple[list[str], Any]:
    file = File()
    found = conduct(degrading(), journal=Journal({"target": "t"}, file))
    return file.getvalue().splitlines(keepends=True), found.search.recommendation()


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    lines, whole = recorded()
    path = tmp_path / "run.jsonl"
    for known in (1, 2, len(lines) // 2, len(lines) - 1, len(lines)):
        # What was being written when it was killed does not count.
        path.write_text("".join(lines[:known]) + [*lines, lines[1]][known][:40])
        target = degrading()
        journal = Journal.resume(path, {"target": "t"})
        found = conduct(target, journal=journal)
        journal.close()
        now = path.read_text().splitlines(keepends=True)
        assert now[:known] == lines[:known]
        assert len(now) == len(found.taken) + 1
        again = found.search.recommendation()
        assert again.complete
        assert again.limit == pytest.approx(whole.limit, rel=0.3)
        if known == len(lines):
            assert again == whole
            assert len(target.asked) == 1  # one alone, to see that it is there


def test_what_was_measured_is_not_sent_again(tmp_path: Path) -> None:
    lines, _ = recorded()
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines[:-1]))
    target = degrading()
    journal = Journal.resume(path, {"target": "t"})
    found = conduct(target, journal=journal)
    journal.close()
    last = json.loads(lines[-1])["played"]["counts"]["offered"]
    assert 0 < len(target.asked) < 3 * last + 50
    assert len(path.read_text().splitlines()) == len(found.taken) + 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no journal"),
        ("{}\n", "no journal"),
        ('{"format": 2, "run": {}}\n', "another version"),
        (
            '{"format": 1, "run": {"a": {"b": 1}}}\n',
            r"of another run: a\.b is 1 there, and null is asked for",
        ),
        ('{"format": 1, "run": {"a": {"b": 2}}}\n{"step": 1}\n', "no journal"),
    ],
)
def test_what_cannot_be_gone_on_with(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(JournalError, match=says):
        Journal.resume(path, {"a": {}})
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("good", value) for value in (-5, 10**30, 1.5, True, "1")),
        *(("seconds", value) for value in (math.nan, -1.0, 0.0, "1")),
        *(("latencies", value) for value in ("abc", [None], [math.inf], [-1.0], [10**400])),
        *(("lag", "x"), ("failures", [1]), ("failures", {"a": -1}), ("stopped", 1), ("capped", 1)),
    ],
)
def test_a_journal_with_what_cannot_have_been_measured(tmp_path: Path, name: str, value: object) -> None:
    lines, _ = recorded()
    line = json.loads(lines[1])
    (line["played"]["counts"] if name == "good" else line["played"])[name] = value
    path = tmp_path / "run.jsonl"
    path.write_text(lines[0] + json.dumps(line) + "\n")
    with pytest.raises(JournalError, match="no journal"):
        Journal.resume(path, {"target": "t"})


def test_a_full_disk_does_not_end_a_run() -> None:
    class Full(File):
        def flush(self) -> None:
            if self.getvalue().count("\n") > 2:
                raise OSError(28, "No space left on device")

    found = conduct(degrading(), journal=Journal({"target": "t"}, Full()))
    assert found.search.recommendation().complete
    assert found.broken is None
    [note] = found.notes
    assert "The log is not complete" in note
    assert "No space left on device" in note


def test_a_journal_of_other_steps(tmp_path: Path) -> None:
    lines, _ = recorded()
    path = tmp_path / "run.jsonl"
    path.write_text("".join([lines[0], lines[2]]))
    journal = Journal.resume(path, {"target": "t"})
    with pytest.raises(JournalError, match="line 2 of the journal is another step"):
        conduct(degrading(), journal=journal)
    journal.close()


# --- schedules ---------------------------------------------------------------------------------------


def step(number: int, rate: float) -> Step:
    return Step(number, "ramp", rate, None, 2.0, 8.0)


@pytest.mark.parametrize(
    "load", [Load(), Load(arrivals="even"), Load(arrivals="trace", trace=[0.0, 1.0, 1.5, 4.0])]
)
def test_schedules_are_of_the_rate_and_can_be_repeated(load: Load) -> None:
    times = list(schedule(step(1, 50.0), load))
    assert times == list(schedule(step(1, 50.0), load))
    assert times == sorted(times)
    assert 0.0 <= times[0] < times[-1] < 10.0
    assert 400 < len(times) < 600
    assert list(schedule(step(1, 0.0), load)) == []
    if load.arrivals != "even":
        assert times != list(schedule(step(2, 50.0), load))


def test_trickles_are_sent_at_random_moments() -> None:
    times: list[float] = []
    for number in range(200):
        times += schedule(step(number, 0.1), Load())
    assert 150 < len(times) < 250
    assert len(set(times)) == len(times)
