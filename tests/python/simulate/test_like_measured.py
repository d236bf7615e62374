"""A demo's JSON, read strictly."""

from __future__ import annotations

import json

import pytest
from likekit import changed, demo_json, with_row
from tidegate.demo import capacity
from tidegate.simulate.like.measured import LikeError, read


def test_a_demo_is_read_as_it_was_measured() -> None:
    fields, demo = demo_json(), read(changed())
    assert demo.inferred == []
    assert (demo.seed, demo.seconds, demo.arrivals, demo.workers) == (1, 3.0, "trace", fields["workers"])
    assert [(level.workers, level.per_s) for level in demo.curve] == [
        (level["workers"], level["per_s"]) for level in fields["curve"]
    ]
    for row, written in zip(demo.rows, fields["loads"], strict=True):
        assert (row.load, row.arm, row.good, row.late, row.shed, row.p99_ms) == tuple(
            written[key] for key in ("load", "arm", "good", "late", "shed", "p99_ms")
        )
        assert row.essential.good == written["essential"]["good"]


def test_what_an_older_demo_does_not_say_is_inferred_and_said() -> None:
    demo = read(changed(seconds=None, arrivals=None, workers=None))
    assert demo.seconds == pytest.approx(3.0, rel=0.0003)
    assert demo.arrivals == "trace"
    assert demo.workers == capacity.best_workers(demo.curve)
    assert len(demo.inferred) == 2
    assert "for how long users came; by what was offered it was 3 s" in demo.inferred[0]


def test_seconds_that_cannot_be_inferred_are_missing() -> None:
    fields = demo_json()
    del fields["seconds"]
    fields["loads"] = [row for row in fields["loads"] if row["late"] > 0]
    with pytest.raises(LikeError, match=r"^seconds: is missing, and in each of loads some were late"):
        read(json.dumps(fields))


def test_a_trace_of_its_own_is_not_had() -> None:
    assert "a trace of its own" in read(changed(arrivals="file")).inferred[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        pytest.param("[" * 100_000, "nested too deeply", id="deep"),
        ("[]", r"the file: must be an object, got \[\]"),
        ("{}", "curve: is missing"),
        (changed(curve=[]), "curve: must be a list with one object at least"),
        (changed(curve=[{"workers": 1, "per_s": 50.0}]), "curve: must have two numbers of workers at least"),
        (
            changed(curve=[{"workers": 2, "per_s": 50.0}, {"workers": 1, "per_s": 50.0}]),
            r"each larger than the one before, got \[2, 1\]",
        ),
        (changed(curve=[{"workers": 1, "per_s": 0}]), r"curve\[1\].per_s: must be a number above 0"),
        (changed(best_per_s=True), "best_per_s: must be a number from 0 to 1000000, got true"),
        (changed(best_per_s=float("nan")), "best_per_s: must be a number from 0 to 1000000, got NaN"),
        (changed(best_per_s=1e300), "best_per_s: must be a number from 0"),
        (changed(timeout="1"), 'timeout: must be a number from 0 to 1000000, got "1"'),
        (changed(timeout=-1), "timeout: must be a number from 0"),
        (changed(seconds=0), "seconds: must be a number above 0"),
        (changed(seed=1.5), "seed: must be a whole number, got 1.5"),
        (changed(limit=0), "limit: must be a whole number from 1 to 1000000, got 0"),
        (changed(limit="x" * 100), 'limit: must be a whole number, got "xxx.*xxx\\.\\.\\.$'),
        (changed(valid=1), "valid: must be true or false, got 1"),
        (changed(database=None), "database: is missing"),
        (changed(arrivals="rain"), "arrivals: must be one of trace, poisson, file, got 'rain'"),
        (changed(reference=[]), r"reference: must be an object, got \[\]"),
        (changed(reference={"load": 4.0}), "reference.goodput_ratio: is missing"),
        (changed(loads=[1]), r"loads\[1\]: must be an object, got 1"),
        (with_row(2, good=-1), r"loads\[3\].good: must be a whole number from 0"),
        (with_row(2, good=1), r"loads\[3\]: good \+ late \+ shed must be offered, got 1 \+ 0 \+ 0 and"),
        (with_row(2, load=0), r"loads\[3\].load: must be a number above 0"),
        (with_row(2, p50_ms="fast"), r"loads\[3\].p50_ms: must be a number"),
        (with_row(0, essential={"offered": 3, "good": 4}), r"loads\[1\].essential: good must be at most"),
    ],
)
def test_what_cannot_be_used_names_key_and_rule(text: str, said: str) -> None:
    with pytest.raises(LikeError, match=said):
        read(text)
