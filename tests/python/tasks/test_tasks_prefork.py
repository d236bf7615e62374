"""A real worker that forks its tasks' processes, behind a real Redis."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from billiard.exceptions import WorkerLostError
from celery.exceptions import SoftTimeLimitExceeded
from gatekit import PATIENCE

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def shop(redis: str) -> Iterator[ModuleType]:
    """The worker's app, as a client has it, while a worker with one child serves it."""
    environment = {**os.environ, "SHOP_REDIS": redis, "C_FORCE_ROOT": "1"}
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "shop_app",
        "worker",
        "--pool=prefork",
        "--concurrency=1",
    ]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR"]
    worker = subprocess.Popen(
        [*command, *quiet], cwd=HERE, env=environment, stderr=subprocess.PIPE, text=True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_REDIS", redis)
        import shop_app

        try:
            yield shop_app
        finally:
            shop_app.app.close()
            worker.terminate()
            try:
                _, log = worker.communicate(timeout=PATIENCE)
            finally:
                worker.kill()
            print(log)  # shown where a test fails


def test_a_shed_inside_a_forked_task_is_retried(shop: ModuleType) -> None:
    assert shop.shed_once.delay().get(timeout=PATIENCE, interval=0.01) == 1


@pytest.mark.leak("celery", "timeout")
def test_a_task_beyond_its_soft_time_limit_frees_its_permit(shop: ModuleType) -> None:
    child, _, before, _ = shop.look.delay().get(timeout=PATIENCE)
    with pytest.raises(SoftTimeLimitExceeded):
        shop.slow.delay().get(timeout=PATIENCE)
    after_child, in_flight, after, room = shop.look.delay().get(timeout=PATIENCE)
    assert (after_child, in_flight, room) == (child, 1, 1)  # the look itself, and no room beside it
    assert after["overload"] == before["overload"] + 1


@pytest.mark.leak("celery", "server-killed")
def test_a_child_that_is_killed_takes_its_counts_with_it(shop: ModuleType) -> None:
    child, *_ = shop.look.delay().get(timeout=PATIENCE)
    with pytest.raises(WorkerLostError):
        shop.die.delay().get(timeout=PATIENCE)
    successor, in_flight, _, room = shop.look.delay().get(timeout=PATIENCE)
    assert successor != child
    assert (in_flight, room) == (1, 1)
