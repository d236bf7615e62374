"""``pip install`` of the source distribution, into a new environment, as a stranger would do it.

One build serves all: the tree makes the sdist, the sdist makes the wheel, the wheel is installed and tried.
It is about packaging, so it is built without the optimisations that take the longest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import tidegate
from gatekit import REPOSITORY

TARGET = REPOSITORY / "target" / "tests"  # kept, so that only the first run is slow
BUILD = {
    "CARGO_TARGET_DIR": str(TARGET),
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "0",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**environment, **BUILD},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as a commit would have it, somewhere else."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("NOT TESTED: this is no clone, so what belongs to the project is not known")
    tree = tmp_path_factory.mktemp("clone")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=REPOSITORY)
    for name in filter(None, listed.split("\0")):
        source, target = REPOSITORY / name, tree / name
        if source.is_file():  # or it was removed and not committed
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return tree


@pytest.fixture(scope="module")
def sdist(tree: Path) -> Path:
    run(sys.executable, "-m", "maturin", "sdist", "--out", tree / "dist", cwd=tree)
    (sdist,) = (tree / "dist").glob("*.tar.gz")
    return sdist


@pytest.fixture(scope="module")
def installed(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a new environment with the package in it, built from the sdist by plain pip."""
    environment = tmp_path_factory.mktemp("venv")
    # All files of an sdist have the same age, so cargo would take our own crates for unchanged.
    for fingerprint in TARGET.glob("release/.fingerprint/tidegate*"):
        shutil.rmtree(fingerprint)
    run(sys.executable, "-m", "venv", environment, cwd=environment)
    run(environment / "bin" / "pip", "install", "--quiet", sdist, cwd=environment)
    return environment / "bin"


def test_the_sdist_holds_what_a_build_and_a_lawyer_need(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert sdist.name == f"tidegate-{tidegate.__version__}.tar.gz"
    for needed in (
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "README.md",
        "CHANGELOG.md",
        "PKG-INFO",
        "pyproject.toml",
        "Cargo.toml",
        "Cargo.lock",
        "src/lib.rs",
        "bindings/python/Cargo.toml",
        "bindings/python/src/lib.rs",
        "python/tidegate/__init__.py",
        "python/tidegate/_native.pyi",
        "python/tidegate/py.typed",
    ):
        assert needed in names, needed
    made_here = [
        name for name in names if name.endswith((".so", ".pyc")) or name.startswith(("target", ".venv"))
    ]
    assert not made_here


def test_what_was_installed_works(installed: Path) -> None:
    script = """if True:
        import pathlib, sysconfig, tidegate
        assert pathlib.Path(tidegate.__file__).is_relative_to(sysconfig.get_path("purelib"))
        gate = tidegate.Gate("db", limit=1)
        with gate:
            try:
                with gate:
                    pass
            except tidegate.Shed as refused:
                print(refused)
    """
    told = run(installed / "python", "-W", "error", "-c", script, cwd=installed)
    assert told.startswith("gate 'db' full: 1 of 1 in flight")


def test_it_brings_its_types_its_data_and_nothing_else(installed: Path) -> None:
    script = """if True:
        import importlib.metadata, sys
        package = importlib.metadata.distribution("tidegate")
        for file in package.files:
            print(file)
        print("version", package.version)
        print("needs", [need for need in package.requires or [] if "extra" not in need])
    """
    told = run(installed / "python", "-c", script, cwd=installed).splitlines()
    assert f"version {tidegate.__version__}" in told
    assert "needs []" in told
    assert "tidegate/py.typed" in told
    assert "tidegate/_native.pyi" in told
    assert any(name.startswith("tidegate/_native.abi3.") for name in told)
    assert {"LICENSE-MIT", "LICENSE-APACHE"} <= {Path(name).name for name in told if ".dist-info/" in name}
    data = {path.name for path in (REPOSITORY / "python/tidegate/demo/data").iterdir()}
    assert data <= {Path(name).name for name in told if name.startswith("tidegate/demo/data/")}
    assert not [name for name in told if name.startswith(("tests", "src", "bindings"))]


def test_the_command_is_there(installed: Path) -> None:
    assert "demo" in run(installed / "tidegate", "--help", cwd=installed)
