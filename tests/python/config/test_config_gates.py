"""Gates from a file: a mapping, its objects, and what a file cannot say."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import weakref
from collections.abc import Mapping
from pathlib import Path

import pytest
import tidegate
from tidegate import Change, ConfigError, Gate, Gates, Outcome, Priority, Problem, Reason, Shed, load
from tidegate.testing import ManualClock

TWO = "[gates.db]\nlimit = 5\n[gates.cache]\nlimit = 2\nthresholds = { sheddable = { reserve = 1 } }\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tidegate.toml"
    path.write_text(TWO, "utf-8")
    return path


def test_a_file_is_a_mapping_of_its_gates(file: Path) -> None:
    gates = load(file)
    assert isinstance(gates, Mapping)
    assert list(gates) == list(gates.keys()) == ["db", "cache"]
    assert len(gates) == 2
    assert "db" in gates and "other" not in gates and 7 not in gates and "\ud800" not in gates
    db = gates["db"]
    assert type(db) is Gate
    assert (db.name, db.limit) == ("db", 5)
    assert gates["db"] is db is gates.get("db")
    assert next(iter(gates.values())) is db
    assert dict(gates) == dict(gates.items()) == {"db": db, "cache": gates["cache"]}
    assert gates.get("other") is None and gates.get("other", 3) == 3
    with pytest.raises(KeyError, match=r"tidegate\.toml has no gate 'other'; it has db, cache"):
        gates["other"]
    assert repr(gates) == f"<Gates of {file}: db, cache>"
    assert gates.path == file
    assert gates["cache"].thresholds[Priority.SHEDDABLE] == 1


def test_the_path_is_that_of_loading(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    gates = load("tidegate.toml")
    monkeypatch.chdir("/")
    file.write_text("[gates.db]\nlimit = 6\n", "utf-8")
    assert [str(change) for change in gates.reload()] == [
        "gate db: limit 5 -> 6",
        "gate cache: removed, and closed",
    ]


def test_blocks_permits_and_outcomes_are_those_of_any_gate(file: Path) -> None:
    class BusyError(Exception):
        pass

    gates = load(file, outcomes={"db": {BusyError: "overload"}})
    db = gates["db"]
    with pytest.raises(BusyError), db:
        raise BusyError
    with pytest.raises(BusyError), gates["cache"]:
        raise BusyError
    assert db.stats().released[Outcome.OVERLOAD] == 1
    assert gates["cache"].stats().released[Outcome.SUCCESS] == 1
    db.__exit__(None, None, None)
    assert db.stats().unmatched_exits == 1


def test_a_clock_by_hand(file: Path) -> None:
    clock = ManualClock()
    gates = load(file, clock=clock)
    clock.set(3_000_000_000)
    gates["db"].set_limit(9)
    assert gates["db"].limit_history[0].at == 3.0
    gates.reload(TWO + "[gates.new]\nlimit = 1\n")
    gates["new"].set_limit(2)
    assert gates["new"].limit_history[0].at == 3.0


@pytest.mark.parametrize(
    ("outcomes", "error", "part"),
    [
        ({"other": {}}, ConfigError, 'outcomes are given for gate "other", which'),
        ({"db": {ValueError: "bad"}}, ConfigError, "outcome must be one of"),
        ({"db": 3}, TypeError, "outcomes must be a mapping"),
        ({3: {}}, TypeError, "name must be a str"),
        ([1], TypeError, "outcomes must be a mapping from name"),
    ],
)
def test_outcomes_are_checked_at_once(
    file: Path, outcomes: object, error: type[Exception], part: str
) -> None:
    with pytest.raises(error, match=part):
        load(file, outcomes=outcomes)  # type: ignore[arg-type]


def test_everything_wrong_is_told_at_once(file: Path) -> None:
    file.write_text("[gates.db]\nlimit = -1\nspeed = 3\n\n[gates.x.controller]\nkind = 'pid'\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert isinstance(caught.value, ValueError)
    assert caught.value.problems == (
        Problem(2, "gates.db.limit", "limit must be a whole number from 0 to 2147483647, got -1"),
        Problem(
            3,
            "",
            'unknown key "speed"; gates.db takes burst, controller, default_priority, enforce, limit, '
            "objective, rate, scope, signals, thresholds, timing",
        ),
        Problem(
            6,
            "gates.x.controller.kind",
            'must be one of fixed, aimd, gradient2, vegas, goodput, got "pid"',
        ),
    )
    problems = caught.value.problems
    lines = [f"{file}, line {line}: {key}{': ' if key else ''}{said}" for line, key, said in problems]
    assert str(caught.value).splitlines() == lines
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.problems == problems
    with pytest.raises(ConfigError) as plain:
        Gate("x", limit=-1)
    assert plain.value.problems == ()


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, said in [
        (tmp_path / "none.toml", "cannot be read: "),
        (tmp_path, "is a directory, not a file"),
    ]:
        with pytest.raises(ConfigError) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: {said}")
        assert caught.value.problems[0].line == 0
    for no_path in (None, 3, ["x"]):
        with pytest.raises(TypeError, match="path must be a str or an os"):
            load(no_path)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Gates()  # type: ignore[call-arg]


def test_gates_belong_to_this_process(file: Path) -> None:
    gates = load(file)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="load the file in each process"):
            copied(gates)


def test_a_text_in_place_of_a_file() -> None:
    gates = Gates.from_toml(TWO)
    assert gates.path is None
    assert gates["db"].limit == 5
    with pytest.raises(ConfigError, match=r"<text>: was given as text"):
        gates.reload()
    with pytest.raises(ConfigError, match=r"^mine, line 1: gates\.db: limit is missing$"):
        Gates.from_toml("[gates.db]", file="mine")


def test_a_text_that_utf_8_cannot_write_is_no_toml() -> None:
    text = "[gates.db]\nlimit = 1 # \udcff"
    with pytest.raises(ConfigError, match=r"t\.toml, line 2: is not UTF-8, as TOML has to be"):
        Gates.from_toml(text, file="t.toml")
    gates = Gates.from_toml("[gates.db]\nlimit = 5", file="t.toml")
    with pytest.raises(ConfigError, match=r"t\.toml, line 2: is not UTF-8") as caught:
        gates.reload(text)
    assert [problem.line for problem in caught.value.problems] == [2]
    assert gates["db"].limit == 5


def test_a_cycle_through_a_hook_is_collected(file: Path) -> None:
    gates = load(file)
    gates["db"].subscribe(lambda _event, kept=gates: None)
    gone = weakref.ref(gates)
    del gates
    gc.collect()
    assert gone() is None


def test_gates_are_published_as_others_are(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    monkeypatch.setenv("TIDEGATE_METRICS_DIR", str(folder))
    gates = load(file)
    assert len(list(folder.glob("*.tidegate"))) == 2
    gates.reload(TWO + "[gates.new]\nlimit = 1\n")
    assert len(list(folder.glob("*.tidegate"))) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("published", [False, True])
def test_a_child_has_the_file_too(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: bool
) -> None:
    if published:
        monkeypatch.setenv("TIDEGATE_METRICS_DIR", str(tmp_path))
    file.write_text(TWO + "default_priority = 'sheddable'\n", "utf-8")
    gates = load(file)
    with gates["db"]:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                same = gates["db"].in_flight == 0 and gates["db"].limit == 5
                same = same and gates["cache"].default_priority is Priority.SHEDDABLE
                gates.reload("[gates.db]\nlimit = 7\n")
                code = 0 if same and gates["db"].limit == 7 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert gates["db"].limit == 5


def test_the_file_is_explained(file: Path) -> None:
    assert load(file).explain().splitlines()[0] == (
        "gate db: at most 5 at once; sheddable while fewer than 4 are inside"
    )


def test_shed_says_what_it_says(file: Path) -> None:
    gates = load(file)
    db = gates["db"]
    gates.reload("[gates.cache]\nlimit = 2\n")
    with pytest.raises(Shed) as caught, db:
        pass
    assert caught.value.reason is Reason.CLOSED
    assert "db" not in gates and list(gates) == ["cache"]


def test_the_names_are_public() -> None:
    assert {"Gates", "load", "Change", "Problem"} <= set(tidegate.__all__)
    assert Change.__module__ == Gates.__module__ == "tidegate"
