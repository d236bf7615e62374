"""The server's side of a WSGI request, one step at a time, so that tests decide what happens when."""

import io
import json
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

App = Callable[[dict[str, Any], Any], Iterable[bytes]]


def environ(path: str = "/", method: str = "GET", **more: Any) -> dict[str, Any]:
    made = {"SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": "", "REQUEST_METHOD": method}
    made |= {"REMOTE_ADDR": "127.0.0.1", **more}
    setup_testing_defaults(made)
    del made["HTTP_HOST"]
    return made


class Exchange:
    """A request that was given to an application: what it started, and the body to be drawn and closed."""

    def __init__(self, app: App, request: dict[str, Any] | None = None) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.starts = 0
        self.written = io.BytesIO()
        self.body = app(request or environ(), self._start)

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        if exc_info and self.written.tell():
            raise exc_info[1]
        self.starts += 1
        self.status = int(status.split()[0])
        self.headers = {name.lower(): value for name, value in headers}
        return self.written.write

    def drain(self) -> bytes:
        """Draws all there is, and closes, as a server does."""
        try:
            for part in self.body:
                assert self.status, "the body began before the response"
                self.written.write(part)
            return self.written.getvalue()
        finally:
            self.close()

    def close(self) -> None:
        if hasattr(self.body, "close"):
            self.body.close()


def status_of(app: App, request: dict[str, Any] | None = None) -> int | None:
    """The status of a whole exchange, in which a validator looks at what the middleware does."""
    exchange = Exchange(validator(app), request or environ())
    exchange.drain()
    return exchange.status


def assert_refused(app: App, request: dict[str, Any] | None = None) -> None:
    """Exactly one complete 503 with its headers."""
    exchange = Exchange(validator(app), request or environ())
    body = exchange.drain()
    assert (exchange.status, exchange.starts) == (503, 1)
    assert exchange.headers["content-type"] == "application/problem+json"
    assert exchange.headers["content-length"] == str(len(body))
    assert int(exchange.headers["retry-after"]) >= 1
    assert json.loads(body)["reason"] == "limit"


def ok(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """An application that answers at once."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ok"]
