"""D23: a Retry-After is a whole number of seconds, at least 1, never too early, and jitter only adds."""

import json
from math import inf

import pytest
from tidegate import Gate, Shed
from tidegate._errors import retry_after_seconds
from tidegate.http import shed_response


@pytest.mark.parametrize(
    ("wait", "seconds"),
    [
        (0.493, 1),
        (57.2, 58),
        (57.0, 57),
        (1.0, 1),
        (1.000001, 2),
        (0.0, 1),
        (-0.0, 1),
        (-3.7, 1),
        (1e-300, 1),
        (3600, 3600),
        (None, 1),  # unknown: another replica may answer
        (inf, 60),  # for good, but of this replica only
    ],
)
def test_whole_seconds_rounded_up(wait: float | None, seconds: int) -> None:
    got = retry_after_seconds(wait)
    assert got == seconds
    assert type(got) is int


@pytest.mark.parametrize("wait", [0.493, 57.2, 0.0, -1.0, None, inf, 1e9])
def test_header_is_a_plain_number_never_below_the_wait(wait: float | None) -> None:
    for _ in range(100):
        header = a_shed(wait).retry_after_header
        assert header.isascii()
        assert header.isdigit()
        assert int(header) >= retry_after_seconds(wait)


def test_jitter_only_adds() -> None:
    shed = a_shed(10.0)
    headers = [int(shed.retry_after_header) for _ in range(1000)]
    assert min(headers) >= 10
    assert len(set(headers)) >= 2


def test_those_shed_together_do_not_come_back_together() -> None:
    """Without jitter a wait of less than a second would send everybody back in the same second."""
    headers = {a_shed(0.2).retry_after_header for _ in range(1000)}
    assert headers == {"1", "2"}


def test_the_answer_says_the_same_in_header_and_body() -> None:
    for _ in range(50):
        status, headers, body = shed_response(a_shed(10.0))
        problem = json.loads(body)
        assert status == problem["status"] == 503
        assert headers["Content-Type"] == "application/problem+json"
        assert headers["Retry-After"] == str(problem["retry_after"])
        assert problem["type"].endswith("#temporary-reduced-capacity")
        assert (problem["gate"], problem["reason"], problem["priority"]) == ("db", "limit", "critical")


def test_how_full_the_gate_is_stays_inside() -> None:
    _, headers, body = shed_response(Shed("db", "limit", "critical", 4711, 4712, 1.0))
    assert b"471" not in body
    assert "471" not in str(headers)


def test_a_shed_from_a_real_gate() -> None:
    gate = Gate("db", limit=1)
    with gate.admit(), pytest.raises(Shed) as caught:
        gate.admit(priority="sheddable").__enter__()
    assert int(shed_response(caught.value).headers["Retry-After"]) >= 1


def a_shed(wait: float | None) -> Shed:
    return Shed("db", "limit", "critical", 20, 20, wait)
