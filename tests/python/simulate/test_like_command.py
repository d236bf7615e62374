"""`tidegate simulate --like`, as a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from likekit import FILE, changed, demo_json
from tidegate.cli import main


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The demo with its highest load alone."""
    path = tmp_path / "demo.json"
    path.write_text(changed(loads=demo_json()["loads"][-3:]), encoding="utf-8")
    return path


def test_it_says_what_is_predicted_and_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--like", str(FILE)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("Compared: ungated at 4x predicted ")
    assert max(map(len, lines[:-1])) <= 80
    row = demo_json()["loads"][-3]
    (at,) = (at for at, line in enumerate(lines) if line.split()[:3] == ["4x", "ungated", "predicted"])
    assert lines[at + 1].split()[:3] == ["measured", str(row["offered"]), str(row["good"])]
    assert 1900 < int(lines[at].split()[3]) < row["offered"]


def test_its_figures_go_to_files_and_its_scenarios_to_a_folder(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, page = tmp_path / "new" / "scenarios", tmp_path / "like.html"
    arguments = ["--like", str(small), "--json", "-", "--html", str(page), "--scenarios", str(folder)]
    assert main(["simulate", *arguments]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert f"--scenarios {folder}" in page.read_text("utf-8")
    assert {file.name for file in folder.iterdir()} == {
        *("4x-ungated.toml", "4x-semaphore.toml", "4x-tidegate.toml", "4x-users.csv")
    }
    # A scenario is run as any other, and comes to what was predicted.
    for cell in figures["loads"]:
        scenario = folder / f"4x-{cell['arm']}.toml"
        assert scenario.read_text("utf-8") == cell["scenario"]
        assert main(["simulate", str(scenario), "--json", "-"]) == 0
        totals = json.loads(capsys.readouterr().out)["totals"]
        for count in ("offered", "good", "late", "shed"):
            assert totals[count] == pytest.approx(cell["predicted"][count], rel=0.05)


def test_without_a_folder_nothing_is_left(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.chdir(temporary)
    assert main(["simulate", "--like", str(small)]) == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (changed(timeout=0).encode(), "bad.json: timeout: must be a number above 0"),
        (
            changed(curve=[{"workers": n, "per_s": x} for n, x in ((2, 1e6), (3, 1e-6), (4, 1e-6))]).encode(),
            "bad.json: curve: throughput falls so steeply",
        ),
        (changed(seconds=1e6).encode(), "bad.json: loads[1]: at most 1000000 users can be played, got "),
        (b"\xff\xfe{", "bad.json is not UTF-8"),
        (None, "bad.json: No such file"),
    ],
)
def test_a_bad_file_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, said: str
) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)
    assert main(["simulate", "--like", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tidegate simulate: ") and said in captured.err


def test_a_folder_that_cannot_be_had_says_so(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--like", str(small), "--scenarios", str(small)]) == 1
    assert "demo.json: File exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["x.toml", "--like", "demo.json"], ["x.toml", "--scenarios", "there"], ["--like"]]
)
def test_what_does_not_go_together_is_a_usage_error(arguments: list[str]) -> None:
    assert main(["simulate", *arguments]) == 2
