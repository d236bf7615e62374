"""The pure parts: what is written and read, compared and judged."""

from __future__ import annotations

import argparse
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tidegate.capacity import advice, figures, html, show, units
from tidegate.capacity.analysis import Measured, Plan, Recommendation, Search, Step
from tidegate.capacity.baseline import Baseline, BaselineError, Comparison, compare
from tidegate.capacity.conductor import Taken
from tidegate.capacity.generator import Counts, Played
from tidegate.capacity.sql import explain_postgres
from tidegate.capacity.verdict import judge
from tidegate.cli.capacity import configure, kind_of
from tidegate.cli.capacity_run import plan_of
from tidegate.cli.capacity_simulate import Simulated, simulate
from tidegate.report.chart import Chart, Draw, Line
from tidegate.report.origin import Origin
from tidegate.report.page import Tone

# --- words and numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1.5", 1.5), ("200ms", 0.2), ("90 s", 90.0), ("15min", 900.0), ("4h", 14400.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert units.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "-1", "1e3", "nan", "inf", "1d", "1/s", "s", "1" * 400, "\u0661"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|above 0|too large"):
        units.seconds(text)


@pytest.mark.parametrize(
    ("text", "per_s"), [("60", 1.0), ("60/min", 1.0), ("2.5/s", 2.5), ("7200/h", 2.0), ("0", 0.0)]
)
def test_rates(text: str, per_s: float) -> None:
    assert units.per_second(text) == pytest.approx(per_s)


def test_lists_of_rates_are_in_the_unit_of_the_last() -> None:
    assert units.rates("0,10,20,40,80,150/min") == pytest.approx([0, 1 / 6, 1 / 3, 2 / 3, 4 / 3, 2.5])
    assert units.rates("1/s, 120") == pytest.approx([1, 2])
    assert units.rates("5/h") == pytest.approx([5 / 3600])
    for text in ("", "1,,2", "2,1", "1,1", "0", "1,x"):
        with pytest.raises(ValueError, match="rate"):
            units.rates(text)


def test_rates_are_said_as_people_take_them() -> None:
    assert [units.rate(per_s) for per_s in (0.5, 9.9, 12.0, None)] == ["30.0/min", "594/min", "12.0/s", "-"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("http://host/", "url"),
        ("HTTPS://host", "url"),
        ("postgresql://host/db", "sql"),
        ("postgres://host", "sql"),
        ("sqlite:///a.db", "sql"),
        ("a.b:c.d", "function"),
        ("ftp://host", None),
        ("http://", None),
        ("a.b", None),
        ("a:", None),
        (":a", None),
        ("a b:c", None),
    ],
)
def test_kinds_of_targets(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("said", "do"),
    [
        ('connection to server at "h", port 1 failed: Connection refused', "Nobody listens there"),
        ('FATAL: password authentication failed for user "me"', "The credentials are wrong"),
        ("fe_sendauth: no password supplied", "The credentials are wrong"),
        ('FATAL: database "x" does not exist', "Check the names"),
        ("FATAL: sorry, too many clients already", "no connection left"),
        ("something else", "Check the DSN"),
    ],
)
def test_why_there_is_no_postgresql(said: str, do: str) -> None:
    sentence = explain_postgres(f"{said}\n", "postgresql://h/db")
    assert said in sentence
    assert do in sentence


@pytest.mark.parametrize(
    ("kind", "do"),
    [
        ("connection refused", "start the service"),
        ("HTTP 401", "--header"),
        ("HTTP 404", "--method"),
        ("HTTP 429", "by itself"),
        ("HTTP 500", "Its log says why"),
        ("HTTP 301", "--status"),
        ("HTTP 418", "--contains"),
        ("OperationalError: password authentication failed", "in the DSN"),
        ("ConnectError: [Errno -2] Name or service not known", "host and port"),
        ("LookupError: no such order", "one request alone"),
    ],
)
def test_what_to_do_about_failures(kind: str, do: str) -> None:
    assert do in advice.for_failure(kind)


def plan(*options: str) -> Plan:
    parser = argparse.ArgumentParser()
    configure(parser)
    return plan_of(parser.parse_args(["m:f", *options]))


def test_no_gate_is_larger_than_what_may_be_in_flight() -> None:
    assert plan().max_limit == 256
    assert plan("--max-in-flight", "10").max_limit == 10
    assert plan("--max-in-flight", "10", "--max-limit", "99").max_limit == 10
    assert plan("--max-limit", "5").max_limit == 5


def test_the_articles_stages_are_one_option() -> None:
    article = plan("--article")
    assert article.rates == pytest.approx([0, 1 / 6, 1 / 3, 2 / 3, 4 / 3, 2.5])
    assert (article.stage, article.timeout, article.bisect) == (900.0, 180.0, True)
    assert plan("--article", "--no-bisect").bisect is False
    assert plan().rates == ()
    assert (plan("--no-proof").prove, plan("--no-proof").before) == (False, False)
    assert (plan("--no-before").prove, plan("--no-before").before) == (True, False)


# --- a regression ------------------------------------------------------------------------------------


def found(per_min: float, low: float, high: float) -> dict[str, Any]:
    return {"per_min": per_min, "interval": [low, high], "concurrency": 9}


@pytest.mark.parametrize(
    ("now", "fell", "says"),
    [
        (found(100, 90, 110), False, "as it was, +0.0%"),
        (found(85, 80, 90), False, "as it was, -15.0%"),
        (found(80, 75, 89.9), True, "fell by 20.0%, more than its interval"),
        (found(125, 111, 140), False, "rose by 25.0%"),
        (None, True, "could not be determined"),
    ],
)
def test_capacity_fell_where_all_it_may_be_is_below_all_it_may_have_been(
    now: dict[str, Any] | None, fell: bool, says: str
) -> None:
    comparison = compare(Baseline(100, 90, 110), now)
    assert comparison.fell is fell
    assert says in comparison.sentence


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not what tidegate capacity"),
        ("[]", "not what tidegate capacity"),
        ("{}", "not what tidegate capacity"),
        ('{"capacity": null}', "found no capacity"),
        ('{"capacity": {"per_min": 1}}', "is none"),
        ('{"capacity": {"per_min": 1, "interval": [0, Infinity]}}', "is none"),
        ('{"capacity": {"per_min": 1, "interval": [0, 3]}, "run": 1}', "not what tidegate capacity"),
        ('{"capacity": {"per_min": 1, "interval": [2, 3]}}', "is none"),
        ('{"capacity": {"per_min": NaN, "interval": [NaN, NaN]}}', "is none"),
        ('{"capacity": {"per_min": "x", "interval": [0, 3]}}', "is none"),
    ],
)
def test_what_cannot_be_compared_with(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(BaselineError, match=says):
        Baseline.read(path)


def run_of(url: str, timeout: float = 1.0) -> dict[str, Any]:
    return {"target": {"kind": "url", "url": url}, "plan": {"timeout": timeout, "seed": 1}}


def test_a_baseline_of_another_run_is_said_or_refused() -> None:
    baseline = Baseline(100, 90, 110, run_of("http://a/"))
    same = compare(baseline, found(100, 90, 110), run_of("http://a/")).sentence
    assert "another run" not in same
    for run, says in (
        (run_of("http://b/"), 'target.url is "http://a/" there, and "http://b/"'),
        (run_of("http://a/", 2.0), "timeout is 1.0 there, and 2.0"),
    ):
        assert baseline.of_another_kind(run) is None
        comparison = compare(baseline, found(80, 75, 85), run)
        assert comparison.fell
        assert says in comparison.sentence
    why = baseline.of_another_kind({"simulated": {"sigma": 0.02}})
    assert why == "it is of a url target, and this run of a simulated one"
    assert "simulated" in (Baseline(1, 1, 1, {"simulated": {}}).of_another_kind(run_of("http://a/")) or "")
    assert Baseline(1, 1, 1).of_another_kind(run_of("http://a/")) is None


# --- what a run says ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def article() -> tuple[Recommendation, list[Taken]]:
    result = simulate(Simulated(seed=3, before=True))
    return result.recommendation, [Taken(step, measured) for step, measured in result.steps]


def test_verdicts(article: tuple[Recommendation, list[Taken]]) -> None:
    good, _ = article
    fell = Comparison(True, "It fell.")
    cases = [
        (judge(good), Tone.HOLDS, good.verdict),
        (judge(good, broken="It is gone."), Tone.INVALID, "Cannot be tested: It is gone."),
        (judge(good, interrupted=True), Tone.INVALID, f"Interrupted: what is known so far: {good.verdict}"),
        (judge(good, comparison=fell), Tone.FAILS, f"Capacity fell: {good.verdict} It fell."),
        (judge(good, comparison=Comparison(False, "Same.")), Tone.HOLDS, f"{good.verdict} Same."),
        (judge(good, notes=["It was late."]), Tone.HOLDS, f"{good.verdict} It was late."),
        (judge(replace(good, limit=None)), Tone.FAILS, good.verdict),
        (judge(replace(good, limit=None), notes=["Late."]), Tone.INVALID, f"{good.verdict} Late."),
        (judge(replace(good, error_upper=0.01)), Tone.FAILS, good.verdict),
        (judge(replace(good, error_upper=0.0099)), Tone.HOLDS, good.verdict),
        (judge(replace(good, accepted=False)), Tone.FAILS, good.verdict),
        (judge(replace(good, accepted=True)), Tone.HOLDS, good.verdict),
    ]
    for verdict, tone, sentence in cases:
        assert (verdict.tone, verdict.sentence) == (tone, sentence)
        assert verdict.holds is (tone is Tone.HOLDS)


def measured(**more: Any) -> Measured:
    return Measured(**{"seconds": 30.0, "offered": 100, "good": 90, **more})


def test_errors_are_shares_of_what_came_to_something() -> None:
    assert figures.error_share(measured(late=6, failed=4)) == pytest.approx(0.1)
    assert figures.error_share(measured(shed=10)) == 0.0
    assert figures.error_share(measured(offered=5, good=0, shed=5)) is None
    # Withdrawn when the step was ended: these were on their way to nothing.
    assert figures.error_share(measured(end="aborted")) == pytest.approx(0.1)
    assert figures.withdrawn(measured(end="aborted", late=3)) == 7
    assert figures.good_per_min(measured()) == 180.0


def test_quantiles() -> None:
    assert figures.quantile([], 0.5) is None
    assert figures.quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0
    assert figures.quantile([1.0], 0.99) == 1.0


def test_figures_are_per_minute(article: tuple[Recommendation, list[Taken]]) -> None:
    recommendation, taken = article
    data: Any = figures.as_json(
        recommendation, taken, {"a": 1}, verdict="v", holds=True, notes=["n"], gate="g"
    )
    json.dumps(data, allow_nan=False)
    assert data["limit"] == recommendation.limit
    assert data["rate"] == pytest.approx(60 * (recommendation.rate or 0))
    assert 40 < data["breaking_point"][0] < data["breaking_point"][1] < 60
    assert 40 < data["capacity"]["per_min"] < 50
    assert data["capacity"]["interval"][0] < data["capacity"]["per_min"] < data["capacity"]["interval"][1]
    assert data["reasons"][-1] == "n"
    assert data["run"] == {"a": 1}
    assert "[gates.g]" in data["toml"]
    assert 2.5 < data["law"]["lambda"] < 3.5


def test_a_failing_target_has_a_page_too() -> None:
    nothing = Search(Plan(timeout=1.0)).recommendation()
    played = Played(1.0, Counts(10, 0, 0, 0, 10), 1.0, 1, [], {"HTTP 500": 10}, 0.0, 0.1, "most of them fail")
    step = Step(1, "ramp", 5.0, None, 1.0, 4.0)
    taken = [Taken(step, Measured(seconds=1.0, offered=10, failed=10, end="aborted"), played)]
    page = html.as_page(
        nothing,
        taken,
        judge(nothing),
        Origin("c", []),
        data={},
        parameters=[],
        timeout=1.0,
        toml="",
    )
    [section] = page.sections
    [table] = section.tables
    assert "aborted: most of them fail" in table.groups[0].rows[0]
    assert (
        html.as_page(
            nothing, [], judge(nothing), page.origin, data={}, parameters=[], timeout=1.0, toml=""
        ).sections
        == []
    )


def test_a_table_fits_a_terminal(article: tuple[Recommendation, list[Taken]]) -> None:
    recommendation, taken = article
    out = io.StringIO()
    show.show(Console(file=out, width=80), recommendation, taken, judge(recommendation), "limit = 1\n")
    lines = out.getvalue().splitlines()
    assert lines[-1] == recommendation.verdict
    table = [line for line in lines if line.startswith((" ramp", " gate", " proof", " no gate"))]
    assert len(table) == sum(one.step.phase != "baseline" for one in taken)
    assert not any("…" in line for line in table)
    assert max(len(line) for line in table) <= 80


def test_a_reason_that_the_verdict_tells_is_not_told_before_it() -> None:
    found = replace(
        Search(Plan(timeout=1.0)).recommendation(),
        reasons=["it was late", "not all was tried"],
        verdict="It was late.",
    )
    out = io.StringIO()
    show.show(Console(file=out, width=80), found, [], judge(found), "")
    assert out.getvalue().splitlines() == ["not all was tried", "It was late."]


def test_points_and_lines_are_told_apart() -> None:
    chart = Chart(
        "t",
        "x",
        [1.0, 2.0],
        [Line("a", [1.0, None], 0, draw=Draw.POINTS), Line("b", [1.0, 2.0], 1, draw=Draw.LINE)],
    )
    assert [line["draw"] for line in chart.data()["lines"]] == ["points", "line"]  # type: ignore[attr-defined]
    points, line = chart.html(0).split("<li>")[1:]
    assert "<polygon" in points
    assert "<path" not in points
    assert "<path" in line
    assert "<polygon" not in line
