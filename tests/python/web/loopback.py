"""A real uvicorn on a loopback port, in a thread."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def serving(app: Any, **config: Any) -> Iterator[str]:
    """The address, as host:port, at which the application is served."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # What is still open at the end is a fault of the test; it must not hang. Without a configuration of
        # its own, the server's log reaches pytest.
        server = _Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=2, **config))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            assert server.ready.wait(10), "uvicorn did not start"
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive(), "uvicorn did not stop"
