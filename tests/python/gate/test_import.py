"""What ``import tidegate`` costs: milliseconds, no thread, no file, no module that it can do without."""

from __future__ import annotations

import re
import statistics
import sys
import textwrap

import pytest
from gatekit import output_of, python

LOADED = """
import sys
before = set(sys.modules)
import tidegate
{more}
print(*sorted(set(sys.modules) - before))
"""


def loaded(more: str = "") -> set[str]:
    return set(output_of(LOADED.format(more=more), "-S", "-W", "error").split())


def test_nothing_is_imported_that_import_can_do_without() -> None:
    modules = loaded()
    assert {name for name in modules if name.startswith("tidegate")} == {
        "tidegate",
        "tidegate._context",
        "tidegate._drain",
        "tidegate._errors",
        "tidegate._guard",
        "tidegate._held",
        "tidegate._names",
        "tidegate._native",
    }
    strangers = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names) - {"tidegate"}
    assert not strangers, "an integration was loaded"
    heavy = {
        "asyncio",
        "inspect",
        "threading",
        "logging",
        "socket",
        "subprocess",
        "json",
        "random",
        "sqlite3",
    }
    assert not modules & heavy


def test_neither_does_using_a_gate_import_anything_but_for_guards_and_draining() -> None:
    use = textwrap.dedent("""
        gate = tidegate.Gate("db", limit=1, timing=True)
        with gate, tidegate.use_priority("sheddable"):
            try:
                with gate.admit(weight=1):
                    pass
            except tidegate.Shed as refused:
                str(refused)
        gate.try_admit().release()
        gate.stats()
    """)
    assert loaded(use) == loaded()
    assert "inspect" in loaded('tidegate.Gate("db", 1).guard(print)'), "which is how this test can fail"


@pytest.mark.skipif(sys.platform != "linux", reason="counts what /proc shows")
def test_importing_and_making_gates_starts_no_thread_and_opens_nothing() -> None:
    assert output_of("""
        import os
        def owned():
            return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
        before = owned()
        import tidegate
        gates = [tidegate.Gate(f"db {n}", limit=1, timing=True) for n in range(10)]
        for gate in gates:
            with gate:
                pass
        print(before == owned(), before[0])
    """).split() == ["True", "1"]


def test_the_native_part_loads_within_5_ms() -> None:
    """Its own time, as -X importtime has it. The median of fresh starts: a machine has other work, too."""
    own_us = []
    for _ in range(9):
        run = python("import tidegate", "-S", "-X", "importtime")
        found = re.search(r"import time:\s+(\d+) \|\s+\d+ \|\s+tidegate\._native$", run.stderr, re.MULTILINE)
        assert found, run.stderr
        own_us.append(int(found[1]))
    assert statistics.median(own_us) <= 5_000, own_us


def test_all_names_are_there_and_nothing_else_is_public() -> None:
    import tidegate

    interfaces = {
        "Gate", "Permit", "Priority", "Outcome", "Reason", "Shed", "Stats", "TidegateError", "ConfigError",
        "use_priority",
    }  # fmt: skip
    assert interfaces <= set(tidegate.__all__)
    assert all(hasattr(tidegate, name) for name in tidegate.__all__)
    # pytest rewrites a package that brings a plugin, and adds names of its own, which no program could use.
    public = {name for name in vars(tidegate) if name.isidentifier() and not name.startswith("_")}
    submodules = {name.split(".")[1] for name in sys.modules if name.startswith("tidegate.")}
    assert public - submodules == set(tidegate.__all__)
