"""Real signals at random moments of a request, at every edge."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gatekit import PATIENCE

ROUNDS = 1_000
HOOKS = ["asgi", "asgi-websocket", "wsgi", "flask", "django-middleware", "fastapi-dependency"]


@pytest.mark.parametrize(
    "hook", [pytest.param(hook, marks=pytest.mark.leak(hook, "keyboard-interrupt")) for hook in HOOKS]
)
def test_interrupts_at_any_moment(hook: str, seed: int) -> None:
    script = Path(__file__).with_name("edge_interrupts.py")
    run = subprocess.run(
        [sys.executable, str(script), hook, str(ROUNDS), str(seed)],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    counts = json.loads(run.stdout)
    assert counts["interrupted"] > ROUNDS // 20
    assert counts["left"] == 0
    assert counts["next"] == ["critical"], "a request had the priority of one that was interrupted"
