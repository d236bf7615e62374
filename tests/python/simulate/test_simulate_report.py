"""What is said of a run: the sentence, the thinned series, the units."""

from __future__ import annotations

import json

import pytest
from tidegate import _native
from tidegate.report.origin import Origin
from tidegate.report.page import Tone
from tidegate.simulate import html
from tidegate.simulate.report import Report
from tidegate.simulate.series import rows
from tidegate.simulate.units import duration, moment, rate
from tidegate.simulate.verdict import judge

RUN = """
duration = "{minutes}min"
{gate}
[arrivals]
rate = "{rate}/min"
[service]
kind = "shared"
lambda = "3/min"
sigma = 0.02
kappa = 0.000555
[clients]
timeout = "3min"
"""


def run(rate: int, *, gate: str = "", minutes: int = 30) -> Report:
    text = RUN.format(rate=rate, gate=gate, minutes=minutes)
    found: Report = json.loads(_native.simulate(text, "run.toml", 1))
    return found


@pytest.mark.parametrize(
    ("found", "tone", "begins", "has"),
    [
        (
            run(10),
            Tone.HOLDS,
            "Holds: 0 % of those let in were not answered in time; ",
            "good answers a minute.",
        ),
        (
            run(80),
            Tone.FAILS,
            "Collapses: from minute ",
            " to the end most of those let in were not answered in time, ",
        ),
        (run(80, gate="[gate]\nlimit = 30"), Tone.HOLDS, "Holds: ", "of the attempts were shed."),
        (
            run(80, gate="[gate]\nlimit = 30\nenforce = false"),
            Tone.FAILS,
            "Collapses: ",
            "would have been shed",
        ),
        (run(80, gate="[gate]\nlimit = 52"), Tone.FAILS, "Strained: ", "of the attempts were shed."),
        (run(80, gate="[gate]\nlimit = 0"), Tone.FAILS, "Answers nobody: everybody was turned away.", ""),
        (run(0), Tone.INVALID, "Nothing to judge: nobody came.", ""),
    ],
)
def test_the_verdict(found: Report, tone: Tone, begins: str, has: str) -> None:
    verdict = judge(found)
    assert verdict.tone == tone, verdict
    assert verdict.sentence.startswith(begins) and has in verdict.sentence, verdict


def test_a_collapse_that_ends_is_none() -> None:
    found = run(80)
    assert judge(found).sentence.startswith("Collapses")
    found["series"][-1]["error_rate"] = 0.1
    assert judge(found).sentence.startswith("Strained")


@pytest.mark.parametrize("most", [1, 7, 30, 100])
def test_thinned_rows_have_what_the_intervals_have(most: int) -> None:
    found = run(80, gate="[gate]\nlimit = 30")
    thinned = rows(found["series"], most)
    assert len(thinned) <= most
    for key in ("offered", "good", "late", "shed"):
        assert sum(getattr(row, key) for row in thinned) == found["totals"][key]
    area = sum(row.in_flight * row.length_s for row in thinned)
    assert area == pytest.approx(found["in_flight"]["mean"] * found["virtual_s"])
    ends = [row.start_s + row.length_s for row in thinned]
    assert [0.0, *ends[:-1]] == [row.start_s for row in thinned] and ends[-1] == found["virtual_s"]


def test_the_charts_are_of_the_run() -> None:
    found = run(80, gate="[gate]\nlimit = 30")
    page = html.as_page(found, judge(found), Origin("tidegate simulate x.toml", []))
    charts = {chart.title: chart for chart in page.sections[0].charts}
    requests = {line.name: line.values for line in charts["Requests a minute"].lines}
    assert requests["good answers"] == [float(point["good"]) for point in found["series"]]
    assert requests["shed"] == [float(point["shed"]) for point in found["series"]]
    in_flight = {line.name: line.values for line in charts["In flight"].lines}
    assert set(in_flight["limit"]) == {30}
    assert in_flight["in flight"] == pytest.approx([point["in_flight"]["mean"] for point in found["series"]])
    # One priority alone needs no chart of its own.
    assert "Shed, by priority" not in charts


def test_a_chart_for_priorities_where_several_come() -> None:
    mix = ""
    for priority in ("critical", "sheddable"):
        mix += f'[[arrivals.mix]]\npriority = "{priority}"\nshare = 1\n'
    text = RUN.format(rate=80, gate="[gate]\nlimit = 30", minutes=30) + mix
    found: Report = json.loads(_native.simulate(text, "run.toml", 1))
    page = html.as_page(found, judge(found), Origin("tidegate simulate x.toml", []))
    (chart,) = [chart for chart in page.sections[0].charts if chart.title == "Shed, by priority"]
    assert [line.name for line in chart.lines] == ["sheddable", "critical"]
    shares = [value for value in chart.lines[0].values if value is not None]
    assert max(shares) > 50


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "-"),
        (0.0123, "12.3 ms"),
        (4.56, "4.56 s"),
        (179, "179 s"),
        (600, "10.0 min"),
        (36_000, "10.0 h"),
    ],
)
def test_durations(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def test_moments_and_rates() -> None:
    assert (moment(90), moment(360)) == ("second 90", "minute 6")
    assert rate(100, 600, "answers") == "10.0 answers a minute"
    assert rate(100, 2, "answers") == "50.0 answers a second"
