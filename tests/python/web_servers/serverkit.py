"""Real servers in processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import tidegate
from gatekit import PATIENCE

HERE = Path(__file__).parent

GUNICORN = [
    "gunicorn",
    "--config",
    "gunicorn_end.py",
    "--no-control-socket",
    "--graceful-timeout",
    "20",
    "--bind",
]
ASGI_GRACE = ["--asgi-disconnect-grace-period", "0"]  # else it lets the application run on for a while
COMMANDS = {
    "gunicorn sync": [*GUNICORN, "fd://{fd}", "served:wsgi"],
    "gunicorn gthread": [*GUNICORN, "fd://{fd}", "--threads", "16", "served:wsgi"],
    "gunicorn asgi": [*GUNICORN, "fd://{fd}", "--worker-class", "asgi", *ASGI_GRACE, "served:asgi"],
    "uvicorn": ["uvicorn", "--fd", "{fd}", "--timeout-graceful-shutdown", "20", "served:asgi"],
    "hypercorn": ["hypercorn", "--bind", "fd://{fd}", "--graceful-timeout", "20", "served:asgi"],
}


class Server:
    """A running server."""

    def __init__(self, address: str, process: subprocess.Popen[str], folder: Path) -> None:
        self.address = address
        self.process = process
        self.folder = folder
        # A connection for each request, so that any worker may have it.
        limits = httpx.Limits(max_keepalive_connections=0)
        self.client = httpx.Client(base_url=address, verify=False, limits=limits, timeout=PATIENCE)
        self.get = self.client.get

    def stats(self) -> dict[str, Any]:
        """Of whichever worker answers."""
        stats: dict[str, Any] = self.get("/stats").json()
        return stats

    def go_on(self) -> None:
        """What is held ends."""
        (self.folder / "go").touch()

    def terminate(self) -> None:
        """SIGTERM, and until the server says that it heard it, if it says so."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout is not None
        if "hypercorn" not in self.process.args:  # type: ignore[operator]
            while not re.search("Handling signal: term|Shutting down", self.process.stdout.readline()):
                pass

    def end(self) -> str:
        """What it wrote, when it has ended by itself."""
        output, _ = self.process.communicate(timeout=PATIENCE)
        return output

    def ends(self) -> list[dict[str, Any]]:
        """What the gates of its workers had come to when these ended."""
        return [json.loads(path.read_text()) for path in (self.folder / "ends").iterdir()]


@contextmanager
def served_by(name: str, folder: Path, *options: str, limit: int = 1) -> Iterator[Server]:
    """The service of served.py behind this server."""
    (folder / "ends").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.set_inheritable(True)
        module, *arguments = [part.format(fd=listener.fileno()) for part in COMMANDS[name]]
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments[:-1], *options, arguments[-1]],
            cwd=HERE,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(tidegate.__file__).parents[1]),
                "TIDEGATE_LIMIT": str(limit),
                "TIDEGATE_GO": str(folder / "go"),
                "TIDEGATE_ENDS": str(folder / "ends"),
            },
            pass_fds=[listener.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        server = Server(address, process, folder)
        with server.client:
            assert server.get("/stats").status_code == 200
            yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # gunicorn: at once
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
        print(process.communicate()[0])
