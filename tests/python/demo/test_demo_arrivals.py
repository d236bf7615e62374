from __future__ import annotations

import random
import statistics
from itertools import pairwise
from pathlib import Path

import pytest
from tidegate.demo import arrivals

SHIPPED = arrivals.read_trace()


def test_the_shipped_trace_is_real_and_small() -> None:
    gaps = [later - earlier for earlier, later in pairwise(SHIPPED)]
    assert len(SHIPPED) == 9665
    assert 57 * 60 < SHIPPED[-1] < 59 * 60
    # Half of it, drawn at random, is as irregular as the whole, whose gaps vary by 1.09 of their mean.
    assert 1.0 < statistics.stdev(gaps) / statistics.mean(gaps) < 1.15
    data = Path(arrivals.__file__).parent / "data"
    assert sum(file.stat().st_size for file in data.iterdir()) <= 200_000
    assert "Attribution 4.0 International" in (data / "LICENSE-AzurePublicDataset-CC-BY-4.0.txt").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(("per_s", "seconds"), [(50.0, 6.0), (400.0, 6.0), (0.1, 1.0), (5000.0, 3.0)])
def test_a_segment_has_exactly_the_load_asked_for(per_s: float, seconds: float) -> None:
    times = list(arrivals.segment(SHIPPED, per_s, seconds, random.Random(1)))
    assert len(times) == max(1, round(per_s * seconds))
    assert times == sorted(times)
    assert times[0] == 0.0
    assert times[-1] < seconds


def test_a_segment_keeps_the_shape_of_the_trace() -> None:
    trace = [0.0, 1.0, 3.0, 6.0]  # a ring of the gaps 1, 2 and 3
    times = list(arrivals.segment(trace, per_s=1.0, seconds=3.0, rng=random.Random(1)))
    gaps = [later - earlier for earlier, later in pairwise([*times, 3.0])]
    turns = [[0.5, 1.0, 1.5], [1.0, 1.5, 0.5], [1.5, 0.5, 1.0]]
    assert any(gaps == pytest.approx(turn) for turn in turns)


def test_poisson_arrivals_have_the_rate_and_the_irregularity_of_chance() -> None:
    times = list(arrivals.poisson(100.0, 100.0, random.Random(1)))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(times) == pytest.approx(10_000, abs=3 * 100)
    assert statistics.stdev(gaps) / statistics.mean(gaps) == pytest.approx(1.0, abs=0.05)
    assert times == sorted(times)
    assert times[0] > 0.0
    assert times[-1] < 100.0


def test_everything_about_users_comes_from_the_seed() -> None:
    def draw(seed: int) -> list[arrivals.Arrival]:
        rng = random.Random(seed)
        return arrivals.populate(arrivals.segment(SHIPPED, 100.0, 60.0, rng), rng)

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_one_user_in_ten_is_essential() -> None:
    users = arrivals.populate([0.0] * 10_000, random.Random(1))
    assert sum(user.essential for user in users) == pytest.approx(1000, abs=3 * 30)
    assert all(len(user.pauses) == arrivals.MAX_RETRIES for user in users)
    assert all(0.1 <= pause <= 0.5 for user in users for pause in user.pauses)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\n2.5\n4\n", [1.0, 2.5, 4.0]),
        ("seconds\n4,x\n1,y\n", [1.0, 4.0]),
        (
            "TIMESTAMP,ContextTokens\n2023-11-16 18:15:46.6805900,374\n2023-11-16 18:15:50.9951690,396\n",
            [1700158546.68059, 1700158550.995169],
        ),
        ("2023-11-16T18:15:46Z\n2023-11-16T19:15:47+01:00\n", [1700158546.0, 1700158547.0]),
    ],
)
def test_a_trace_of_ones_own(tmp_path: Path, text: str, expected: list[float]) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(text)
    assert arrivals.read_trace(file) == expected


@pytest.mark.parametrize("text", ["", "seconds\n", "1\n", "1\n1\n", "1\nsoon\n", "1\nnan\n", "0\ninf\n"])
def test_a_bad_trace_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(arrivals.TraceError):
        arrivals.read_trace(file)


def test_a_missing_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(arrivals.TraceError, match="cannot read"):
        arrivals.read_trace(tmp_path / "none.csv")
