"""The exposition over HTTP, in each framework, by the line that the docs give."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from scraping import Scrape
from tidegate import ConfigError, Gate
from tidegate.prometheus import CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE, asgi_app, exposition, wsgi_app

OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5"}
ASKED = [({}, CONTENT_TYPE), (OPENMETRICS, OPENMETRICS_CONTENT_TYPE)]

pytestmark = pytest.mark.usefixtures("unpublished")


@pytest.fixture
def gate() -> Gate:
    return Gate("served", limit=7)


def assert_metrics(response: httpx.Response, content_type: str = CONTENT_TYPE) -> None:
    assert (response.status_code, response.headers["content-type"]) == (200, content_type)
    assert Scrape(response.text).value("limit", gate="served") == 7


def get_asgi(app: Any, path: str, headers: dict[str, str], method: str = "GET") -> httpx.Response:
    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test", follow_redirects=True
        ) as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(request())


@pytest.mark.parametrize(("headers", "content_type"), ASKED)
def test_asgi(gate: Gate, headers: dict[str, str], content_type: str) -> None:
    assert_metrics(get_asgi(asgi_app, "/anything", headers), content_type)
    head = get_asgi(asgi_app, "/", headers, "HEAD")
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(("headers", "content_type"), ASKED)
def test_wsgi(gate: Gate, headers: dict[str, str], content_type: str) -> None:
    with httpx.Client(transport=httpx.WSGITransport(wsgi_app), base_url="http://test") as client:
        assert_metrics(client.get("/anything", headers=headers), content_type)
        assert client.head("/").content == b""


def test_asgi_serves_http_only() -> None:
    async def no_message(*message: object) -> Any: ...

    with pytest.raises(NotImplementedError, match="lifespan"):
        asyncio.run(asgi_app({"type": "lifespan"}, no_message, no_message))


def test_fastapi_beside_a_gate_that_is_full(gate: Gate) -> None:
    from fastapi import FastAPI
    from tidegate.asgi import HEALTH_PATHS
    from tidegate.fastapi import install

    app = FastAPI()
    app.mount("/metrics", asgi_app)
    install(app, Gate("full", limit=0), health_paths=(*HEALTH_PATHS, "/metrics", "/metrics/"))
    assert_metrics(get_asgi(app, "/metrics", {}))
    assert get_asgi(app, "/other", {}).status_code == 503


def test_flask(gate: Gate) -> None:
    from flask import Flask
    from werkzeug.middleware.dispatcher import DispatcherMiddleware

    app = Flask(__name__)
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/metrics": wsgi_app})
    with httpx.Client(transport=httpx.WSGITransport(app), base_url="http://test") as client:
        assert_metrics(client.get("/metrics"))
        assert client.get("/other").status_code == 404


def test_a_directory_that_is_missing_is_named(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = directory / "missing"
    monkeypatch.setenv("TIDEGATE_METRICS_DIR", str(missing))
    with pytest.raises(ConfigError, match=r"published in a directory that exists.*/missing"):
        Gate("db", limit=1)
    with pytest.raises(FileNotFoundError, match="/missing"):
        exposition()


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_METRICS_DIR", "")
    gate = Gate("db", limit=3)
    assert Scrape(exposition(gate)).value("limit", gate="db") == 3
