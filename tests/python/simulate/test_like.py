"""The demo and the simulator tell one story: on a demo that was really run, the simulator, which knows of it
only what the database can do when nobody queues, predicts collapse and rescue; wrong models do not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from likekit import changed, demo_json
from tidegate import _native
from tidegate.demo.report import Row
from tidegate.report.origin import Origin
from tidegate.report.page import Tone, render
from tidegate.simulate.like import figures, html
from tidegate.simulate.like.compare import Comparison, Pair, compare
from tidegate.simulate.like.figures import mean
from tidegate.simulate.like.figures_of import figures_of
from tidegate.simulate.like.measured import Demo, LikeError, read
from tidegate.simulate.like.model import Model

DEMO = read(changed())
FITTED = Model.fit(DEMO.curve)

# The demo was run while other programs worked on the same two cores, so its speed drifted by a tenth or two
# after its curve was measured.
ERRORS = 0.07
GOODPUT = 0.20
ESSENTIAL = 0.12


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compare(DEMO, folder=tmp_path_factory.mktemp("like"), seed=1, simulate=_native.simulate)


def pair(found: Comparison, load: float, arm: str) -> Pair:
    return next(
        pair for pair in found.pairs if (pair.cell.measured.load, pair.cell.measured.arm) == (load, arm)
    )


def alone(row: Row) -> Demo:
    """The demo with nothing but this cell."""
    return replace(DEMO, rows=[row])


def gap_of(pair: Pair, figure: str) -> float:
    return next(
        abs(predicted - measured) for kind, predicted, measured, _ in pair.figures() if kind.key == figure
    )


# --- one story ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.5, 1.0, 2.0, 4.0])
def test_the_collapse_is_predicted(found: Comparison, load: float) -> None:
    assert gap_of(pair(found, load, "ungated"), "error_rate") <= ERRORS
    assert gap_of(pair(found, load, "ungated"), "goodput_ratio") <= GOODPUT
    assert gap_of(pair(found, load, "ungated"), "essential") <= ESSENTIAL


@pytest.mark.parametrize("arm", ["semaphore", "tidegate"])
@pytest.mark.parametrize("load", [0.5, 1.0, 2.0, 4.0])
def test_the_rescue_is_predicted(found: Comparison, load: float, arm: str) -> None:
    assert gap_of(pair(found, load, arm), "error_rate") == 0.0
    assert gap_of(pair(found, load, arm), "goodput_ratio") <= GOODPUT
    assert gap_of(pair(found, load, arm), "essential") <= ESSENTIAL


def test_the_users_are_the_demos(found: Comparison) -> None:
    """Nobody tries again behind a gate that answers in time, so there all attempts are users."""
    for pair in found.pairs:
        for run in pair.runs:
            if pair.cell.measured.late == 0:
                assert run.offered == pair.cell.measured.offered
            assert run.good + run.late + run.shed == run.offered


def test_the_same_seed_predicts_the_same(found: Comparison, tmp_path: Path) -> None:
    row = DEMO.rows[-3]
    again, other = (
        compare(alone(row), folder=tmp_path, seed=seed, simulate=_native.simulate).pairs[0].runs
        for seed in (1, 1000)
    )
    first = pair(found, row.load, row.arm).runs
    assert again == first
    assert first[0] != first[1]
    assert other != first
    assert mean(other, "offered") == pytest.approx(mean(first, "offered"), rel=0.02)


# --- wrong models ------------------------------------------------------------------------------------


def law_without_end() -> Model:
    """The law fitted to all of the curve and believed of forty, four times as bad in pairs."""
    points = [(level.workers, level.per_s) for level in DEMO.curve]
    law = _native.fit_usl(points)
    assert law.kappa > 0
    return Model(law.lambda_, law.sigma, 4 * law.kappa, 1000)


def told(old: str, new: str) -> Callable[[str, str, int], str]:
    """A simulator that is told something else."""

    def simulate(text: str, file: str, seed: int) -> str:
        assert old in text
        return _native.simulate(text.replace(old, new), file, seed)

    return simulate


@pytest.mark.parametrize(
    ("load", "arm", "figure", "bound", "model", "simulate"),
    [
        pytest.param(
            *(1.0, "ungated", "error_rate", ERRORS, law_without_end(), _native.simulate),
            id="a law that forty threads follow",
        ),
        pytest.param(
            *(4.0, "tidegate", "goodput_ratio", GOODPUT, law_without_end(), _native.simulate),
            id="a law that two threads follow",
        ),
        pytest.param(
            *(4.0, "ungated", "error_rate", ERRORS, replace(FITTED, processors=1000), _native.simulate),
            id="no end of processors",
        ),
        pytest.param(
            *(4.0, "tidegate", "goodput_ratio", GOODPUT, replace(FITTED, processors=1), _native.simulate),
            id="one processor",
        ),
        pytest.param(
            *(2.0, "ungated", "error_rate", ERRORS, FITTED, told("most = 2", "most = 0")),
            id="nobody tries again",
        ),
        pytest.param(
            *(
                4.0,
                "tidegate",
                "essential",
                ESSENTIAL,
                FITTED,
                told("[gate]", "[gate]\nthresholds = { sheddable_plus = 1.0, sheddable = 1.0 }"),
            ),
            id="nothing is kept for essential requests",
        ),
        pytest.param(
            *(4.0, "semaphore", "error_rate", ERRORS, FITTED, told("limit = ", "limit = 9")),
            id="a gate that lets in far more",
        ),
    ],
)
def test_a_wrong_model_tells_another_story(
    tmp_path: Path,
    load: float,
    arm: str,
    figure: str,
    bound: float,
    model: Model,
    simulate: Callable[[str, str, int], str],
) -> None:
    row = next(row for row in DEMO.rows if (row.load, row.arm) == (load, arm))
    wrong = compare(alone(row), folder=tmp_path, seed=1, simulate=simulate, model=model)
    assert gap_of(wrong.pairs[0], figure) > bound


# --- what is said of it ------------------------------------------------------------------------------


def test_the_verdict_has_the_highest_load_and_how_much_was_as_predicted(found: Comparison) -> None:
    row, predicted = (
        pair(found, 4.0, "ungated").cell.measured,
        figures.ERRORS.over(pair(found, 4.0, "ungated").runs),
    )
    assert row.error_rate is not None and predicted is not None
    assert found.verdict.startswith(
        f"Compared: ungated at 4x predicted {predicted.mean:.1%} errors, "
        f"measured {row.error_rate:.1%};".replace("%", " %")
    )
    assert found.verdict.endswith(
        f" {found.compared - len(found.differences)} of {found.compared} figures were as predicted."
    )


def test_what_users_cost_may_be_why_goodput_is_less_than_predicted(found: Comparison) -> None:
    at_4x = [one for one in found.differences if one.load == 4.0 and one.kind is figures.GOODPUT]
    causes = {one.arm: one.cause.key for one in at_4x}
    assert causes == {"ungated": "many_at_work", "semaphore": "refusing", "tidegate": "refusing"}


def test_every_difference_is_said_once_under_what_may_explain_it(found: Comparison) -> None:
    explained = [difference for _, differences in found.explained() for difference in differences]
    assert sorted(map(id, explained)) == sorted(map(id, found.differences))
    for difference in found.differences:
        assert difference.cell == f"{difference.arm} at {difference.load:g}x"
        assert difference.said.startswith("predicted ") and ", measured " in difference.said
        predicted = difference.kind.over(pair(found, difference.load, difference.arm).runs)
        assert predicted is not None and difference.kind.differs(difference.measured, predicted)


def test_an_invalid_demo_is_compared_and_called_invalid(tmp_path: Path) -> None:
    demo = replace(alone(DEMO.rows[0]), valid=False)
    found = compare(demo, folder=tmp_path, seed=1, simulate=_native.simulate)
    assert found.verdict.startswith("Compared with an invalid demo, whose figures prove nothing: ")
    assert html.as_page(found, Origin("", ())).tone is Tone.INVALID


def test_an_arm_that_nobody_knows_is_left_out_and_named(tmp_path: Path) -> None:
    rows = [DEMO.rows[0], replace(DEMO.rows[1], arm="auto")]
    found = compare(replace(DEMO, rows=rows), folder=tmp_path, seed=1, simulate=_native.simulate)
    assert [pair.cell.measured.arm for pair in found.pairs] == ["ungated"]
    assert found.notes == ["Nothing is predicted of auto."]
    with pytest.raises(LikeError, match="loads: nothing to compare, got auto"):
        compare(replace(DEMO, rows=rows[1:]), folder=tmp_path, seed=1, simulate=_native.simulate)


def test_the_json_has_both_sides_and_the_scenario_of_each_cell(found: Comparison) -> None:
    written = json.loads(json.dumps(figures_of(found), allow_nan=False))
    assert [(cell["load"], cell["arm"]) for cell in written["loads"]] == [
        (row["load"], row["arm"]) for row in demo_json()["loads"]
    ]
    for cell, row in zip(written["loads"], demo_json()["loads"], strict=True):
        assert all(row[key] == value for key, value in cell["measured"].items())
        assert set(cell["predicted"]) == {*cell["measured"], "sd"}
        assert set(cell["predicted"]["essential"]) == {"offered", "good"}
        assert "[service]" in cell["scenario"]
    assert {level["workers"] for level in written["model"]["curve"]} == {1, 2, 3, 4}
    assert written["verdict"] == found.verdict
    assert [one["sentence"] for one in written["differences"]] == [
        f"{one.cell}: {one.said}" for one in found.differences
    ]


def test_the_page_says_all_of_it_and_needs_no_network(found: Comparison) -> None:
    page = render(html.as_page(found, Origin("tidegate simulate --like demo.json", ())))
    for sentence, _ in found.explained():
        assert sentence.split("'")[0] in page
    assert "ungated predicted" in page
    assert page.isascii()
    assert "http://" not in page.replace("http://www.w3.org", "")
