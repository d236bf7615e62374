"""`tidegate check FILE`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
import tidegate
from tidegate.cli import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "tidegate.toml"


def test_the_example_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(EXAMPLE)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out == (
        "gate db: at most 20 at once; sheddable_plus while fewer than 18 are inside, "
        "sheddable while fewer than 15\n"
        "  at most 150 a minute, plus a burst of 10\n"
        "  requests that name no priority are critical\n"
        "gate orders: at most 20 at once for now; sheddable_plus while fewer than 18 are inside, "
        "sheddable while fewer than 15\n"
        "  requests that name no priority are critical\n"
        "  goodput moves the limit between 4 and 200, from 20 on: it tries a tenth more and a tenth "
        "less in turn, and goes where more good answers come out\n"
        "  it has found the limit after 5 to 10 experiments of at least 240 completions each: a "
        "minute or two at 45 a second, an hour or two at 45 a minute; to see 2 % more or less takes "
        "some 2500\n"
        "  good is a success within 2s\n"
        "  signal latency: how long permits are held, as a share of the objective\n"
        "    overload at 0.9 or above for 2s, until at 0.7 or below for 10s; full pressure at 1, "
        "which takes 20s to reach\n"
        "  signal replication: what the program pushes\n"
        "    overload at 0.85 or above for 2s, until at 0.7 or below for 10s; full pressure at 1, "
        "which takes 20s to reach\n"
        "  pressure is that of the worst signal: it sheds sheddable first, then sheddable_plus, then "
        "up to 95 % of critical, then of critical_plus\n"
        "gate search: at most 50 at once; sheddable_plus while fewer than 45 are inside, "
        "sheddable while fewer than 38\n"
        "  requests that name no priority are sheddable_plus\n"
        "  how long permits are held is measured\n"
        "  warning: dry run: nobody is turned away, and who would have been is counted\n"
        "classifier: the first rule that matches a request decides\n"
        '  rule 1 "payments": critical_plus, if path = "/pay/*"\n'
        '  rule 2 "reports": sheddable, if method = "GET", path = ["/reports/*", "/export/*"]\n'
        '  rule 3 "free plan": sheddable_plus, if header.x-plan = "free"\n'
        "  all other requests are critical\n"
    )


def test_a_bad_file_has_one_problem_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[gates.db]\nlimit = 1.5\nenforce = 'no'\n[gates.x]\nrate = 3\n", "utf-8")
    assert main(["check", str(file)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        f"{file}, line 2: gates.db.limit: limit must be a whole number from 0 to 2147483647, got 1.5",
        f"{file}, line 3: gates.db.enforce: must be true or false, got 'no'",
        f"{file}, line 4: gates.x: limit is missing",
        f"{file}, line 5: gates.x.rate: rate must be COUNT/UNIT, a whole number from 0 to 10000000000 and s, "
        'min or h, such as "150/min", got "3"',
    ]


def test_what_is_no_file_and_no_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"{tmp_path}: is a directory, not a file\n"
    assert main(["check"]) == 2
    assert main(["check", "--deep", "x"]) == 2


def test_the_command_alone_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    for command in ("capacity", "check", "demo", "simulate"):
        assert f"\n    {command} " in said.err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tidegate {tidegate.__version__}\n"


@pytest.mark.parametrize("arguments", [["capacity"], ["check"], ["simulate"], ["demo", "--seconds", "x"]])
def test_a_usage_error_is_two_lines(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    usage, error = capsys.readouterr().err.splitlines()
    assert usage.startswith(f"usage: tidegate {arguments[0]} [-h] ")
    assert error.startswith(f"tidegate {arguments[0]}: error: ")


def test_a_look_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_METRICS_DIR", str(tmp_path / "nowhere"))
    assert main(["check", str(EXAMPLE)]) == 0


def test_a_terminal_that_cannot_write_a_name_shows_it_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "names.toml"
    file.write_text('[gates."😀é"]\nlimit = 40\n', "utf-8")
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii"))
    assert main(["check", str(file)]) == 0
    sys.stdout.flush()
    assert shown.getvalue().startswith(rb"gate \U0001f600\xe9: at most 40 at once")
