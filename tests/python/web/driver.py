"""The server's side of an ASGI connection, one message at a time, so that tests decide what happens when."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from tidegate.asgi import App, Message, Receive, Scope, Send

DENIAL = {"websocket.http.response": {}}


def http(path: str = "/", **more: Any) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [],
        **more,
    }


def websocket(path: str = "/", extensions: dict[str, Any] | None = None) -> Scope:
    return http(path, type="websocket", scheme="ws", subprotocols=[], extensions=extensions or {})


class Connection:
    """An application at work on one connection."""

    def __init__(self, app: App, scope: Scope) -> None:
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        self.task = asyncio.ensure_future(app(scope, self._to_app.get, self._from_app.put))  # type: ignore[arg-type]

    def push(self, kind: str, **more: Any) -> None:
        """The client did something."""
        self._to_app.put_nowait({"type": kind, **more})

    async def next(self) -> Message:
        """What the application sends next."""
        async with asyncio.timeout(5):
            return await self._from_app.get()

    async def end(self) -> list[Message]:
        """What else it sends until it returns, or what it raises."""
        async with asyncio.timeout(5):
            await self.task
        return self.pending()

    def pending(self) -> list[Message]:
        """What it has sent, and nobody has taken."""
        return [self._from_app.get_nowait() for _ in range(self._from_app.qsize())]


async def answer(app: App, scope: Scope) -> list[Message]:
    """All that the application sends when asked without a body."""
    connection = Connection(app, scope)
    connection.push("http.request", body=b"", more_body=False)
    return await connection.end()


async def status_of(app: App, scope: Scope) -> int:
    return (await answer(app, scope))[0]["status"]


def assert_refused(messages: list[Message], kind: str = "http.response") -> None:
    """Exactly one complete 503 with its headers."""
    start, body = messages
    assert start["type"] == f"{kind}.start"
    assert start["status"] == 503
    headers = dict(start["headers"])
    assert headers[b"content-type"] == b"application/problem+json"
    assert headers[b"content-length"] == str(len(body["body"])).encode()
    assert int(headers[b"retry-after"]) >= 1
    assert body["type"] == f"{kind}.body"
    assert not body.get("more_body", False)
    assert json.loads(body["body"])["reason"] == "limit"


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


async def ok(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that answers at once."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
