"""A URL as a target, by httpx.

Connections are kept and reused, as many as are in flight, as a service in front of it would. A request that
is given up on closes its connection, which is all that HTTP has to withdraw one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import httpx

from tidegate.capacity.rows import NUMBER, Rows, template
from tidegate.capacity.target import TargetError, in_few_words

# Parameters that open a door; PostgreSQL takes its password so, too.
_SECRET = re.compile(
    r"([?&;](?:[\w.-]*(?:password|passwd|secret|token|signature)|api[_-]?key|sig)=)[^&;#]*", re.IGNORECASE
)
_LOGIN = re.compile(r"(://)[^/]*@")


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent, and which answers are good."""

    url: str
    method: str = "GET"
    headers: Sequence[tuple[str, str]] = ()
    body: str | None = None
    statuses: Sequence[tuple[int, int]] = ((200, 299),)
    """Ranges of good ones, both ends included. A redirect is none: what it points to does the work."""
    contains: str | None = None
    """What the body of a good answer contains."""


class UrlTarget:
    """Sends HTTP requests."""

    def __init__(self, request: Request, rows: Rows, connections: int) -> None:
        self._request = request
        self._rows = rows
        self._url = template(request.url, rows, "URL")
        self._body = None if request.body is None else template(request.body, rows, "body")
        self._headers = [(name, template(value, rows, f"header {name}")) for name, value in request.headers]
        self._connections = connections
        self._client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Make the client; the first request is the first to be sent."""
        limits = httpx.Limits(
            max_connections=self._connections,
            max_keepalive_connections=self._connections,
            keepalive_expiry=60,
        )
        # Time is kept by whoever sends, from the moment that was meant.
        self._client = httpx.AsyncClient(timeout=None, limits=limits)  # noqa: S113
        try:
            url = self._url(self._in_url(0))
            self._client.build_request(self._request.method, url)
            if urlsplit(url).port == 0 or not urlsplit(url).hostname:  # a port beyond 65535 raises
                raise ValueError("it names no host and port")
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError) as error:
            raise TargetError(f"{self._shown()} is no URL to send to: {error}.") from error

    async def ask(self, number: int) -> str | None:
        """One request."""
        assert self._client is not None
        row = {NUMBER: str(number), **self._rows[number]}
        try:
            async with self._client.stream(
                self._request.method,
                self._url(self._in_url(number)),
                headers=[(name, value(row)) for name, value in self._headers],
                content=None if self._body is None else self._body(row),
            ) as answer:
                return self.judge(answer.status_code, await self._read(answer))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return failure(error)

    async def _read(self, answer: httpx.Response) -> str:
        """All of the body, kept only where it is looked at: as many bodies as requests are in flight."""
        if self._request.contains is not None:
            await answer.aread()
            return answer.text
        async for _ in answer.aiter_raw():
            pass
        return ""

    def judge(self, status: int, body: str) -> str | None:
        """How an answer failed, if it did."""
        if not any(low <= status <= high for low, high in self._request.statuses):
            return f"HTTP {status}"
        if self._request.contains is not None and self._request.contains not in body:
            return f"HTTP {status} without {self._request.contains!r} in its body"
        return None

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    @property
    def most_in_flight(self) -> int | None:
        """No bound but the run's."""
        return None

    @property
    def overhead(self) -> float:
        """Not known."""
        return 0.0

    def describe(self) -> Mapping[str, str]:
        """Method and URL without what it has of passwords; of the headers the names."""
        described = {"kind": "url", "url": self._shown(), "method": self._request.method}
        if self._request.headers:
            described["headers"] = ", ".join(name for name, _ in self._request.headers)
        if self._request.body is not None:
            described["body"] = f"{len(self._request.body.encode())} bytes"
        return described

    def _in_url(self, number: int) -> Mapping[str, Any]:
        return {NUMBER: str(number), **{name: quote(value, "") for name, value in self._rows[number].items()}}

    def _shown(self) -> str:
        return without_password(self._request.url)


def without_password(url: str) -> str:
    """A URL that may be shown around."""
    url = _SECRET.sub(r"\1***", url)
    try:
        parts = urlsplit(url)
        if parts.password is None:
            return url
    except ValueError:  # no URL, and nobody knows where in it a password would be
        return _LOGIN.sub(r"\1***@", url)
    _, _, place = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{parts.username}:***@{place}"))


def failure(error: Exception) -> str:
    """Why there was no answer."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        cause = cause.__cause__ or cause.__context__
    # httpcore says no more of a refusal than this.
    if isinstance(error, httpx.ConnectError) and "All connection attempts failed" in str(error):
        return "connection refused"
    return in_few_words(error)
