"""Gates for WSGI applications: Flask, Django, or a bare function.

What a permit covers: a request holds it until the server has closed the body, which is after the last byte
was sent, or after its client has left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Unpack

from tidegate.edge import HEALTH_PATHS, Edge, EdgeOptions, Request, TrustedHeader, shed_in
from tidegate.http import check_status, shed_response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from tidegate._native import Gate

__all__ = ["HEALTH_PATHS", "GateMiddleware", "ShedMiddleware", "TrustedHeader"]


class ShedMiddleware:
    """Answers a Shed that the application did not handle with a 503.

    It comes too late once a part of the body was given to the server. Then it lets the Shed pass, and the
    server aborts.

    Args:
        app: The application.
        status: The HTTP status of a shed: 503 or 429.

    Raises:
        ConfigError: Another status.
    """

    def __init__(self, app: WSGIApplication, *, status: int = 503) -> None:
        check_status(status)
        self._app = app
        self._status = status

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        start = _Start(start_response)
        try:
            body = self._app(environ, start)
        except Exception as error:
            return self._refusal(error, environ, start)
        if _is_file_of_server(body, environ):
            start.pass_on()
            return body
        ending = ExitStack()
        close: Callable[[], object] | None = getattr(body, "close", None)
        if close is not None:
            ending.callback(close)
        return _Body(self._parts(body, environ, start), ending)

    def _parts(self, body: Iterable[bytes], environ: WSGIEnvironment, start: _Start) -> Generator[bytes]:
        try:
            for part in body:
                start.pass_on()
                yield part
        except Exception as error:
            yield from self._refusal(error, environ, start)
        start.pass_on()

    def _refusal(self, error: Exception, environ: WSGIEnvironment, start: _Start) -> list[bytes]:
        """The answer to a shed; what is no shed, or comes too late, is raised."""
        shed = shed_in(error)
        if shed is None or start.passed_on:
            raise error
        status, headers, body = shed_response(shed, self._status)
        line = f"{status} {HTTPStatus(status).phrase}"
        start(line, [*headers.items(), ("Content-Length", str(len(body)))])
        start.pass_on()
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


class GateMiddleware:
    """Admits each request through a gate, and answers with a 503 what it sheds.

    A Shed of another gate that the application did not handle is answered likewise.

    Args:
        app: The application.
        gate: The gate. Its limit holds for this process.
        **options: As every edge has them: see ``tidegate.edge.Edge``. A function for ``priority`` gets the
            environ.

    Raises:
        ConfigError: An option breaks its rule.
        TypeError: An option has the wrong type.
    """

    def __init__(self, app: WSGIApplication, gate: Gate, **options: Unpack[EdgeOptions]) -> None:
        self._app = app
        self._edge = Edge(gate, **options)
        self._answer = ShedMiddleware(self._admitted, status=self._edge.status)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        return self._answer(environ, start_response)

    def _admitted(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        entry = self._edge.enter(_request(environ))
        with entry.step():
            body = self._app(environ, start_response)
        parts = entry.steps(body)
        ending = ExitStack()  # last in, first out
        ending.callback(entry.end)
        ending.callback(parts.close)
        close: Callable[[], object] | None = getattr(body, "close", None)
        if close is not None:
            ending.callback(entry.run, close)
        if _is_file_of_server(body, environ):
            setattr(body, "close", ending.close)  # noqa: B010 - its class is the server's
            return body
        return _Body(parts, ending)


class _Start:
    """The server's start_response, not called before the body begins: until then a shed takes its place.

    WSGI lets an application take back what it started, but not every server forgets the headers (gunicorn).
    """

    def __init__(self, start_response: StartResponse) -> None:
        self._start_response = start_response
        self._answer: tuple[Any, ...] | None = None
        self._write: Callable[[bytes], object] | None = None

    def __call__(
        self, status: str, headers: list[tuple[str, str]], exc_info: Any = None
    ) -> Callable[[bytes], object]:
        if exc_info and self.passed_on:
            return self._start_response(status, headers, exc_info)  # it knows what it has sent, and raises
        self._answer = (status, headers)
        return self._write_through

    @property
    def passed_on(self) -> bool:
        """Whether the server knows the answer."""
        return self._write is not None

    def pass_on(self) -> None:
        """The body begins."""
        if self._answer is not None:
            answer, self._answer = self._answer, None
            self._write = self._start_response(*answer)

    def _write_through(self, data: bytes) -> None:
        self.pass_on()
        assert self._write is not None
        self._write(data)


class _Body:
    """Parts of a body, and what is due when the server closes it: once, and whatever became of the parts."""

    def __init__(self, parts: Iterator[bytes], ending: ExitStack) -> None:
        self._parts = parts
        self._ending = ending

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._parts)

    def close(self) -> None:
        self._ending.close()


def _is_file_of_server(body: Any, environ: WSGIEnvironment) -> bool:
    """Whether the server sends this by itself, if it gets it as it is. Then only its close() is exchanged."""
    wrapper = environ.get("wsgi.file_wrapper")
    return isinstance(wrapper, type) and isinstance(body, wrapper) and hasattr(body, "__dict__")


def _request(environ: WSGIEnvironment) -> Request:
    def header(name: str) -> str | None:
        return environ.get("HTTP_" + name.upper().replace("-", "_"))

    return Request(
        method=environ["REQUEST_METHOD"],
        path=environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8", "replace"),
        header=header,
        client=environ.get("REMOTE_ADDR"),
        native=environ,
    )
