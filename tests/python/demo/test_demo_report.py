from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console
from tidegate.demo import show
from tidegate.demo.capacity import Level
from tidegate.demo.report import (
    Active,
    Auto,
    Essential,
    Move,
    Reference,
    Report,
    Row,
    good_per_s,
    percentile,
    summarise,
    time_to,
)
from tidegate.demo.users import Attempt, Outcome
from tidegate.demo.verdict import Verdict, as_json, judge


def attempt(outcome: Outcome, latency: float, *, ended: float = 1.0, essential: bool = False) -> Attempt:
    return Attempt(essential, outcome, latency, ended, lag=0.0)


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(n) for n in range(1, 101)]
    assert percentile(values, 0.5) == 50.0
    assert percentile(values, 0.99) == 99.0
    assert percentile([7.0], 0.99) == 7.0
    assert percentile([], 0.5) is None


def test_goodput_counts_the_time_of_answers_after_the_window() -> None:
    good = [attempt(Outcome.GOOD, 0.1, ended=ended) for ended in (1.0, 2.0, 2.5)]
    assert good_per_s(good, window=2.0) == pytest.approx(3 / 2.5)
    assert good_per_s(good, window=5.0) == pytest.approx(3 / 5.0)
    assert good_per_s([attempt(Outcome.LATE, 1.0, ended=9.0)], window=2.0) == 0.0


def test_a_cell_is_summed_up() -> None:
    attempts = [
        attempt(Outcome.GOOD, 0.1, essential=True),
        attempt(Outcome.GOOD, 0.3),
        attempt(Outcome.LATE, 1.0, essential=True),
        attempt(Outcome.SHED, 0.001),
        attempt(Outcome.SHED, 0.002),
    ]
    row = summarise(4.0, "tidegate", attempts, window=2.0, best=2.0)
    assert row == Row(
        load=4.0,
        arm="tidegate",
        offered=5,
        good=2,
        late=1,
        shed=2,
        error_rate=1 / 3,
        goodput_ratio=0.5,
        shed_ms_p50=1.0,
        shed_ms_p99=2.0,
        p50_ms=100.0,
        p99_ms=300.0,
        essential=Essential(offered=2, good=1),
    )
    assert row.admitted == 3
    assert row.essential.success == 0.5


def test_a_cell_without_users_has_no_shares() -> None:
    row = summarise(0.5, "ungated", [], window=1.0, best=100.0)
    assert (row.error_rate, row.p99_ms, row.essential.success, row.goodput_ratio) == (None, None, None, 0.0)


def test_when_a_rate_was_reached_first() -> None:
    answers = [attempt(Outcome.GOOD, 0.1, ended=ended) for ended in (0.5, 1.5, 2.5, 2.75, 3.0, 3.25, 4.5)]
    others = [attempt(Outcome.LATE, 1.0, ended=0.1), attempt(Outcome.SHED, 0.1, ended=0.2)]
    attempts = [*reversed(answers), *others]
    assert time_to(attempts, per_s=4, span=1.0) == 3.25
    assert time_to(attempts, per_s=3, span=1.0) == 3.0
    assert time_to(attempts, per_s=2, span=1.0) == 1.5, "the answers at its ends count"
    assert time_to(attempts, per_s=1, span=2.0) == 1.5
    assert time_to(attempts, per_s=4.1, span=1.0) is None
    assert time_to(attempts, per_s=0, span=1.0) == 0.5, "of nothing, the first"
    assert time_to([], per_s=0, span=1.0) is None


GOOD_ROW = Row(4.0, "", 2000, 600, 0, 1400, 0.0, 0.97, 0.7, 4.0, 260.0, 290.0, Essential(200, 200))
UNGATED = replace(GOOD_ROW, arm="ungated", good=110, late=5000, shed=0, error_rate=0.978, goodput_ratio=0.2)
SEMAPHORE = replace(GOOD_ROW, arm="semaphore", essential=Essential(200, 50))
TIDEGATE = replace(GOOD_ROW, arm="tidegate")
LIGHT = [
    replace(GOOD_ROW, load=0.5, arm=arm, offered=300, good=300, shed=0, shed_ms_p50=None, shed_ms_p99=None)
    for arm in ("ungated", "semaphore", "tidegate")
]


def report(*overload: Row, light: list[Row] = LIGHT, goodput: float = 0.96, lag: float = 4.0) -> Report:
    rows = {row.arm: row for row in (UNGATED, SEMAPHORE, TIDEGATE, *overload)}
    return Report(
        database="sqlite",
        seed=1,
        timeout=1.0,
        seconds=6.0,
        arrivals="trace",
        limit=36,
        workers=2,
        best_per_s=108.0,
        service_ms=18.0,
        curve=[Level(1, 54.0), Level(2, 108.0)],
        generator_lag_ms_p99=lag,
        reference=Reference(load=4.0, pairs=5, goodput_ratio=goodput),
        rows=[*light, *rows.values()],
    )


def test_a_run_that_shows_everything_holds() -> None:
    verdict = judge(report())
    assert verdict.valid and verdict.holds
    assert verdict.sentence == (
        "Holds: at 4x load without a gate 97.8 % of the requests were in vain and good answers fell to 0.20 "
        "of the best; behind Tidegate 0 of 600 admitted came late; good answers stayed at 0.96 of the "
        "reference; half of those turned away knew within 0.7 ms, 99 % within 4.0 ms; 100 % of the essential "
        "requests were answered, with a plain semaphore 25.0 %; at 0.5x load Tidegate turned away 0 %."
    )


@pytest.mark.parametrize(
    ("failing", "found"),
    [
        (report(replace(UNGATED, goodput_ratio=0.31)), "fell to 0.31 of the best (needed"),
        (report(replace(UNGATED, error_rate=0.92)), "92.0 % of the requests were in vain"),
        (report(replace(TIDEGATE, good=598, late=2)), "2 of 600 admitted came late (needed: at most 1"),
        (report(replace(TIDEGATE, good=472)), "0 of 472 admitted came late (needed: at most 1, of 473"),
        (report(goodput=0.849), "stayed at 0.85 of the reference (needed: 0.85 or more)"),
        (report(replace(TIDEGATE, shed_ms_p50=5.1)), "knew within 5.1 ms"),
        (report(replace(TIDEGATE, shed_ms_p99=10.1)), "99 % within 10.1 ms"),
        (report(replace(TIDEGATE, shed_ms_p50=None, shed_ms_p99=None)), "nobody was turned away"),
        (report(replace(TIDEGATE, essential=Essential(200, 197))), "98.5 % of the essential"),
        (report(replace(TIDEGATE, essential=Essential(0, 0))), "none of the essential"),
        (report(replace(SEMAPHORE, essential=Essential(200, 180))), "with a plain semaphore 90.0 %"),
        (report(light=[*LIGHT[:2], replace(LIGHT[2], shed=3)]), "turned away 1.0 % (needed: less than 1 %)"),
    ],
)
def test_each_figure_that_falls_short_is_named(failing: Report, found: str) -> None:
    verdict = judge(failing)
    assert verdict.valid and not verdict.holds
    assert verdict.sentence.startswith("Does not hold: ")
    assert found in verdict.sentence
    assert verdict.sentence.count("needed") == 1


def postgres(goodput: float = 0.85, active: Active | None = Active(33, 40)) -> Report:  # noqa: B008
    stock = replace(UNGATED, arm="stock", goodput_ratio=0.9)
    return replace(report(stock, goodput=goodput), database="postgres", active_backends=active)


def test_a_run_on_postgres_has_its_own_bar_and_shows_contention() -> None:
    verdict = judge(postgres())
    assert verdict.holds
    assert "33 of the database's backends were at work at once then, 40 at most" in verdict.sentence
    assert judge(postgres(goodput=0.80)).holds
    short = judge(postgres(goodput=0.799))
    assert not short.holds
    assert "0.80 of the reference (needed: 0.80 or more)" in short.sentence
    idle = judge(postgres(active=Active(19, 40)))
    assert not idle.holds
    assert "19 of the database's backends" in idle.sentence and "(needed: 20 or more)" in idle.sentence


AUTO = Auto(
    load=4.0,
    pairs=5,
    goodput_ratio=0.95,
    essential=Essential(400, 396),
    searched=30.0,
    time_to_95=4.25,
    limit=27,
    moves=[Move(3.5, 24, "lower"), Move(9.25, 27, "raise")],
)


def test_a_limit_that_finds_itself_is_held_to_the_given_one() -> None:
    verdict = judge(replace(report(), auto=[AUTO]))
    assert verdict.holds
    assert (
        "; at 4x load a limit that found itself (27 in the end) gave 0.95 of the given one's good answers, "
        "in turns; 99.0 % of the essential requests were answered there; " in verdict.sentence
    )
    for short, found in [
        (replace(AUTO, goodput_ratio=0.949), "the given one's good answers, in turns (needed: 0.95 or"),
        (
            replace(AUTO, essential=Essential(400, 395)),
            "98.8 % of the essential requests were answered there (",
        ),
        (
            replace(AUTO, essential=Essential(0, 0)),
            "none of the essential requests were answered there (needed",
        ),
    ]:
        failed = judge(replace(report(), auto=[replace(AUTO, load=2.0), short]))
        assert not failed.holds
        assert found in failed.sentence and failed.sentence.count("needed") == 1


def test_the_json_says_what_the_limit_came_to() -> None:
    fields = json.loads(json.dumps(as_json(replace(report(), auto=[AUTO]), Verdict(True, True, "Holds."))))
    assert fields["auto"] == [
        {
            "load": 4.0,
            "pairs": 5,
            "goodput_ratio": 0.95,
            "essential": {"offered": 400, "good": 396},
            "searched": 30.0,
            "time_to_95": 4.25,
            "limit": 27,
            "moves": [
                {"at": 3.5, "limit": 24, "cause": "lower"},
                {"at": 9.25, "limit": 27, "cause": "raise"},
            ],
        }
    ]
    assert json.loads(json.dumps(as_json(report(), Verdict(True, True, "Holds."))))["auto"] == []


@pytest.mark.parametrize(
    ("auto", "says"),
    [
        (AUTO, "at 4x came to 0.95 of the good answers after 4.2 s (limit 27 in the end); in turns"),
        (replace(AUTO, time_to_95=None), "did not come to 0.95 of the good answers within 30 s (limit 27"),
    ],
)
def test_the_notes_say_how_long_it_took(auto: Auto, says: str) -> None:
    console = Console(width=80, file=io.StringIO(), record=True)
    found = replace(report(), auto=[auto])
    show.show(console, found, judge(found))
    text = " ".join(console.export_text().split())
    assert says in text
    assert "gave 0.95 of its good answers, the median of 5 pairs" in text


def test_what_was_seen_at_work_is_summed_up() -> None:
    assert Active.among([0, 30, 40, 20, 30]) == Active(p50=30, max=40)
    assert Active.among([]) is None
    fields = json.loads(json.dumps(as_json(postgres(), Verdict(True, True, "Holds."))))
    assert fields["active_backends"] == {"p50": 33, "max": 40}
    assert "stock" in [row["arm"] for row in fields["loads"]]


def test_the_table_of_postgres_has_the_stock_pool_beside_it() -> None:
    console = Console(width=80, file=io.StringIO(), record=True)
    show.show(console, postgres(), judge(postgres()))
    lines = console.export_text().splitlines()
    assert any(line.split()[:2] == ["4x", "stock"] for line in lines)
    assert "33 backends of the database were at work at once" in " ".join(" ".join(lines).split())
    assert all(len(line) <= 80 for line in lines[:-1])


def test_a_generator_that_lags_makes_the_run_invalid() -> None:
    assert judge(report(lag=20.0)).valid
    verdict = judge(report(lag=20.1))
    assert not verdict.valid and not verdict.holds
    assert "prove nothing" in verdict.sentence


def test_a_run_between_the_claims_is_not_judged() -> None:
    rows = [replace(row, load=2.0) for row in (UNGATED, SEMAPHORE, TIDEGATE)]
    verdict = judge(replace(report(), rows=rows))
    assert verdict.holds
    assert verdict.sentence.startswith("Nothing to judge")


def test_the_json_has_the_names_that_others_rely_on() -> None:
    fields = json.loads(json.dumps(as_json(report(), Verdict(True, True, "Holds."))))
    assert set(fields) >= {
        *("database", "seed", "timeout", "seconds", "arrivals", "limit", "best_per_s", "service_ms", "curve"),
        *("generator_lag_ms_p99", "valid", "verdict", "reference", "loads", "auto"),
    }
    assert fields["verdict"] == "Holds."
    assert fields["curve"][0] == {"workers": 1, "per_s": 54.0}
    assert fields["reference"] == {"load": 4.0, "pairs": 5, "goodput_ratio": 0.96}
    assert set(fields["loads"][0]) == {
        *("load", "arm", "offered", "good", "late", "shed", "error_rate", "goodput_ratio"),
        *("shed_ms_p50", "shed_ms_p99", "p50_ms", "p99_ms", "essential"),
    }
    assert fields["loads"][0]["essential"] == {"offered": 200, "good": 200}


def test_the_table_fits_a_terminal_and_the_verdict_is_one_last_line() -> None:
    console = Console(width=80, file=io.StringIO(), record=True)
    verdict = judge(report())
    show.show(console, report(), verdict)
    lines = console.export_text().splitlines()
    assert lines[-1] == verdict.sentence
    (ungated,) = (line.split() for line in lines if line.split()[:2] == ["4x", "ungated"])
    assert ungated == ["4x", "ungated", "2000", "110", "97.8%", "0", "100.0%", "260/290", "0.20"]
    assert "0.96 of the reference" in " ".join(" ".join(lines).split())
    assert all(len(line) <= 80 for line in lines[:-1])
