"""Four workers of a real gunicorn, with and without --preload: any shows all (field faults D09, D34)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest
from gatekit import PATIENCE, until
from scraping import Scrape

HERE = Path(__file__).parent
WORKERS = 4

pytest.importorskip("gunicorn", reason="gunicorn is not installed")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="gunicorn needs fork")


class Server:
    """A gunicorn behind a socket in the file system."""

    def __init__(self, directory: Path, *options: str) -> None:
        (directory / "metrics").mkdir()
        (directory / "places").mkdir()
        self.metrics = directory / "metrics"
        socket = directory / "socket"
        self._log = directory / "log"
        command = [
            *(sys.executable, "-m", "gunicorn", "--bind", f"unix:{socket}", "--workers", str(WORKERS)),
            *("--no-control-socket", "--timeout", "120", "--chdir", str(HERE)),
            *options,
            "gunicorn_app:application",
        ]
        environment = {
            **os.environ,
            "TIDEGATE_METRICS_DIR": str(self.metrics),
            "TEST_PLACES": str(directory / "places"),
        }
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        limits = httpx.Limits(max_keepalive_connections=0)
        transport = httpx.HTTPTransport(uds=str(socket), limits=limits)
        self._client = httpx.Client(transport=transport, base_url="http://test", timeout=PATIENCE)

    def get(self, path: str) -> tuple[str, int]:
        """What a request did, and in which process."""
        answer, pid = self._client.get(path).raise_for_status().text.split()
        return answer, int(pid)

    def scrape(self) -> Scrape:
        return Scrape(self._client.get("/metrics").raise_for_status().text)

    def is_up(self) -> bool:
        log = self._log.read_text()
        assert self.process.poll() is None, log
        # Before that, there is nothing to connect to.
        return "Listening at" in log and self.scrape().value("processes", gate="db") == WORKERS

    def stop(self) -> None:
        self._client.close()
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self._log.read_text()


@pytest.fixture(params=["plain", "preload"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    # Not pytest's own folder: the path of a socket must be short.
    with TemporaryDirectory(prefix="tidegate-") as directory:
        server = Server(Path(directory), *(["--preload"] if request.param == "preload" else []))
        try:
            until(server.is_up)
            yield server
        finally:
            server.stop()


def is_gone(pid: int) -> bool:
    """Ended, whether or not its parent has noticed."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):  # also between opening and reading
        return True
    return state in "ZX"


def test_d09_four_workers_are_four_processes_and_one_sum(server: Server) -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        met = list(pool.map(server.get, ["/meet"] * WORKERS))
        assert [answer for answer, _ in met] == ["met"] * WORKERS
        assert len({pid for _, pid in met}) == WORKERS
        paths = ["/block", "/permit", "/fail", "/shed", "/block"] * 80
        answers = Counter(answer for answer, _ in pool.map(server.get, paths))
    assert answers == {"admitted": 320, "shed": 80}
    read = server.scrape()  # right after the last response, by whichever worker
    assert read.total("requests_total", gate="db") == 320
    assert read.value("requests_total", gate="db", priority="critical", outcome="admitted", reason="") == 240
    assert read.value("requests_total", gate="db", priority="sheddable", outcome="admitted", reason="") == 80
    assert read.total("requests_total", gate="full", outcome="shed", reason="limit") == 80
    assert read.total("released_total", gate="db") == 320
    assert read.total("permit_duration_seconds_count", gate="db") == 160
    assert (read.value("in_flight", gate="db"), read.value("limit", gate="db")) == (0, 20 * WORKERS)
    assert read.value("processes", gate="db") == WORKERS
    assert read.value("unreadable_files") == 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="tells by /proc when a process has ended")
def test_d34_a_killed_worker_leaves_its_counts_and_takes_its_gauges(server: Server) -> None:
    for _ in range(20):
        server.get("/block")
    _, pid = server.get("/keep")
    before = server.scrape()
    assert (before.value("in_flight", gate="db"), before.total("requests_total", gate="db")) == (3, 23)
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_gone(pid))
    after = server.scrape()
    assert after.value("in_flight", gate="db") == 0
    assert after.total("requests_total", gate="db") == 23
    assert after.total("released_total", gate="db") == 20
    until(server.is_up)  # gunicorn starts another
    again = server.scrape()
    assert (again.value("limit", gate="db"), again.total("requests_total", gate="db")) == (20 * WORKERS, 23)


def test_workers_that_come_and_go_leave_no_files_behind(server: Server) -> None:
    for rounds in range(1, 6):
        server.get("/block")
        _, pid = server.get("/permit")
        os.kill(pid, signal.SIGTERM)
        until(lambda pid=pid: is_gone(pid))
        until(server.is_up)
        assert server.scrape().total("requests_total", gate="db") == 2 * rounds
    files = list(server.metrics.glob("*.tidegate"))
    assert len(files) <= 2 * (WORKERS + 1), "two gates for each worker and for the parent"
