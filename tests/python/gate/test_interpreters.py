"""Other interpreters than the one that runs the tests, where there are any.

The abi3 module is one file for all of them. A free-threaded interpreter needs one of its own, built here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gatekit import PATIENCE, REPOSITORY, output_of

STORM = Path(__file__).with_name("storm.py")
VERSIONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]
FREE_THREADED = ["3.13t", "3.14t", "3.15t"]
MINE = f"{sys.version_info[0]}.{sys.version_info[1]}"

SMOKE = """
import asyncio, copy, gc, pickle, sys, threading, warnings
import tidegate
from tidegate import Gate, Priority, Shed

warnings.simplefilter("error", DeprecationWarning)
gate = Gate("db", limit=1, outcomes={KeyError: "ignore"})
with gate:
    try:
        with gate:
            raise SystemExit("two are inside")
    except Shed as refused:
        assert pickle.loads(pickle.dumps(refused)).args == refused.args
        assert "1 of 1 in flight" in str(refused)
with gate.admit(priority="sheddable") as permit:
    assert permit.priority is Priority.SHEDDABLE
assert permit.release() is False

async def all_kinds():
    @gate.guard
    async def coroutine():
        return gate.in_flight

    @gate.guard
    async def stream():
        yield gate.in_flight

    async with gate:
        pass
    assert await coroutine() == 1
    assert [item async for item in stream()] == [1]
    abandoned = stream()
    await anext(abandoned)
    del abandoned
    await asyncio.sleep(0)
    assert await gate.drain_async(timeout=10)

@gate.guard
def items():
    yield gate.in_flight

assert list(items()) == [1]
for duplicate in (copy.copy, pickle.dumps):
    try:
        duplicate(gate)
    except TypeError:
        continue
    raise SystemExit("copied")
for error, outcome in ((TimeoutError, "overload"), (KeyError, "ignore"), (ValueError, "success")):
    before = gate.stats().released[outcome]
    try:
        with gate:
            raise error
    except error:
        assert gate.stats().released[outcome] == before + 1
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    gate.try_admit()
    gc.collect()
assert [warning.category for warning in warned] == [ResourceWarning]
with tidegate.use_priority("sheddable"), gate.admit() as permit:
    assert permit.priority == "sheddable"
asyncio.run(all_kinds())
stats = gate.stats()
assert stats.in_flight == 0 and stats.unmatched_exits == 0
assert sum(stats.admitted.values()) == sum(stats.released.values())
print("works")
"""


def starts(command: str, free_threaded: bool) -> bool:
    """Whether it is an interpreter of that kind. (A version manager's stand-in is none.)"""
    ask = "import sysconfig; print(bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
    try:
        answer = subprocess.run(
            [command, "-c", ask], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except OSError:
        return False
    return answer.stdout.strip() == str(free_threaded)


def interpreter(version: str) -> str:
    """The path of that version's interpreter; the test is skipped where there is none."""
    candidates = [shutil.which(f"python{version}")]
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False).stdout.strip()
        candidates += sorted(str(path) for path in Path(root).glob(f"versions/*/bin/python{version}"))
    for candidate in candidates:
        if candidate and starts(candidate, version.endswith("t")):
            return candidate
    pytest.skip(f"NOT TESTED on {version}: no python{version} on the path or known to pyenv")


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != MINE])
def test_the_one_native_module_works_on(version: str) -> None:
    assert output_of(SMOKE, interpreter=interpreter(version)) == "works\n"


def test_it_works_here() -> None:
    assert output_of(SMOKE) == "works\n", "the script itself"
    assert storm(sys.executable, REPOSITORY / "python", rounds=300)[-1] == "calm"


@pytest.mark.parametrize("version", FREE_THREADED)
def test_a_storm_without_an_interpreter_lock(version: str, tmp_path: Path) -> None:
    """Built for that interpreter, in the tests' own build folder."""
    python = interpreter(version)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "maturin",
            "build",
            "--release",
            "--quiet",
            "-i",
            python,
            "--out",
            str(tmp_path),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "CARGO_TARGET_DIR": str(REPOSITORY / "target" / "tests")},
        check=True,
        timeout=600,
    )
    (wheel,) = tmp_path.glob("*.whl")
    shutil.unpack_archive(wheel, tmp_path / "package", format="zip")
    assert storm(python, tmp_path / "package", rounds=3_000) == ["without an interpreter lock", "calm"]


def storm(interpreter: str, package: Path, rounds: int) -> list[str]:
    run = subprocess.run(
        [interpreter, str(STORM), str(rounds)],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=PATIENCE * 4,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    return run.stdout.split("\n")[:-1]
