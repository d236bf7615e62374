"""The pytest plugin, loaded by its entry point into runs of pytest."""

from __future__ import annotations

import re

import pytest

# What the runs inside this one import, pytester forgets again: then it would be there twice.
import tidegate.pytest_plugin
import tidegate.testing  # noqa: F401
from gatekit import REPOSITORY

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:cacheprovider")


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project where Tidegate's entry point is, also if the installed package has none yet."""
    package = pytester.mkdir("tidegate_plugin-1.dist-info")
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: tidegate-plugin\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[pytest11]\ntidegate = tidegate.pytest_plugin\n")
    pytester.syspathinsert()
    return pytester


def test_the_fixture_makes_gates(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from tidegate import ConfigError, Gate, Shed

        def test_gate(tidegate_gate):
            gate = tidegate_gate("db", limit=2, thresholds={"sheddable": 0.5})
            assert (gate.name, gate.limit) == ("db", 2)
            with gate:
                assert gate.try_admit(priority="sheddable") is None

        def test_default(tidegate_gate):
            assert tidegate_gate().limit == 1

        def test_full(tidegate_gate):
            gate = tidegate_gate("db", limit=2)
            with tidegate_gate.full(gate):
                with pytest.raises(Shed):
                    gate.__enter__()
            with gate:
                pass

        def test_bad(tidegate_gate):
            with pytest.raises(ConfigError):
                tidegate_gate("db", limit=-1)
        """
    )
    project.runpytest_inprocess(*OPTIONS).assert_outcomes(passed=4)


def test_the_page_is_right(project: pytest.Pytester) -> None:
    page = (REPOSITORY / "docs" / "testing.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- test: testing-fixture -->\n```python\n(.*?)```", page, re.DOTALL)
    assert block
    project.makepyfile(block[1])
    project.runpytest_inprocess(*OPTIONS).assert_outcomes(passed=3)


def test_what_is_left_inside_fails_the_test_and_is_said(project: pytest.Pytester) -> None:
    project.makepyfile(
        shop="from tidegate import Gate\ngate = Gate('shop', 3)",
        test_left="""
        import shop

        def test_gate(tidegate_gate):
            tidegate_gate("db", limit=2).__enter__()
            tidegate_gate("other", limit=2)

        def test_watched(tidegate_gate):
            assert tidegate_gate.watch(shop.gate) is shop.gate
            shop.gate.__enter__()

        def test_watched_again(tidegate_gate):
            tidegate_gate.watch(shop.gate)
        """,
    )
    result = project.runpytest_inprocess(*OPTIONS)
    result.assert_outcomes(passed=2, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_gate*",
            "gate 'db' is not at rest: 1 of 2 in flight: somebody still holds a permit",
            "*ERROR at teardown of test_watched*",
            "gate 'shop' is not at rest: 1 of 3 in flight: somebody still holds a permit",
        ]
    )


def test_it_can_be_left_out(project: pytest.Pytester) -> None:
    project.makepyfile("def test_gate(tidegate_gate): pass")
    project.makeini("[pytest]\naddopts = -p no:tidegate")
    result = project.runpytest_inprocess(*OPTIONS)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'tidegate_gate' not found*"])


def test_a_run_that_does_not_ask_for_it_pays_for_nothing(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import sys

        def test_nothing():
            loaded = {name for name in sys.modules if name.startswith("tidegate.")}
            assert "tidegate.pytest_plugin" in loaded
            assert not loaded & {"tidegate.testing", "tidegate.edge", "tidegate.http", "tidegate.demo"}
        """
    )
    project.runpytest_subprocess(*OPTIONS, "-W", "error").assert_outcomes(passed=1)


def test_its_help_says_what_it_is(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess(*OPTIONS, "--fixtures")
    result.stdout.fnmatch_lines(["tidegate_gate*", "*Makes gates for a test*"])
