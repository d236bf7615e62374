from __future__ import annotations

import pytest
from tidegate.demo import chatbot
from tidegate.demo.capacity import Level, best_per_s, best_workers, curve, levels, little_limit
from tidegate.demo.corpus import MESSAGES


@pytest.mark.parametrize(
    ("processors", "expected"),
    [(1, [1, 2, 4]), (2, [1, 2, 3, 4]), (4, [1, 2, 4, 6, 8]), (16, [1, 2, 4, 16, 24, 32])],
)
def test_the_levels_go_a_little_beyond_the_machine(processors: int, expected: list[int]) -> None:
    assert levels(processors) == expected


def test_the_curve_is_the_median_of_each_level() -> None:
    assert curve({2: [90.0, 110.0, 100.0], 1: [50.0, 10.0, 51.0]}) == [Level(1, 50.0), Level(2, 100.0)]


def test_the_pool_is_the_smallest_that_is_as_good_as_the_best() -> None:
    measured = [Level(1, 54.0), Level(2, 104.6), Level(4, 110.0), Level(40, 80.0)]
    assert best_per_s(measured) == 110.0
    assert best_workers(measured) == 2
    assert best_workers([Level(1, 54.0), Level(2, 104.4), Level(4, 110.0)]) == 4


@pytest.mark.parametrize(
    ("per_s", "timeout", "limit"), [(108.0, 1.0, 36), (100.0, 0.5, 16), (10.0, 1.0, 8), (30.0, 3.0, 30)]
)
def test_the_limit_is_what_a_third_of_the_timeout_answers(per_s: float, timeout: float, limit: int) -> None:
    assert little_limit(per_s, timeout) == limit


def test_the_search_is_fitted_to_the_machine() -> None:
    assert chatbot.depth_for(0.018, 10_000, 0.0045) == 40_000
    assert chatbot.depth_for(0.018, 10_000, 0.0001) == MESSAGES
    assert chatbot.depth_for(0.018, 10_000, 1e9) == 1


def test_the_search_is_for_the_longest_words() -> None:
    assert chatbot.search_terms("a bb ccc dddd ee") == ("dddd", "ccc", "bb")
