"""The Django middleware, under Django's own handlers, and behind a real uvicorn."""

import asyncio
import gc
import json
from collections.abc import Callable, Iterator
from typing import Any
from wsgiref.util import FileWrapper

import django
import django_project as project
import httpx
import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.test.utils import override_settings
from driver import Connection, http, run
from gatekit import assert_at_rest, released, until
from loopback import serving
from tidegate import Priority, Shed
from wsgi_driver import Exchange, environ

if not settings.configured:
    settings.configure(ALLOWED_HOSTS=["testserver"], SECRET_KEY="for tests")
    django.setup()

GATE = "tidegate.django.middleware.GateMiddleware"
SHED = "tidegate.django.middleware.ShedMiddleware"


@pytest.fixture(autouse=True)
def site() -> Iterator[None]:
    project.start_anew()
    with override_settings(
        ROOT_URLCONF="django_project",
        ALLOWED_HOSTS=["*"],
        MIDDLEWARE=[GATE],
        TIDEGATE={"GATE": "django_project.web", "PRIORITY": "django_project.priority"},
    ):
        yield


# --- one way to ask, for both handlers ------------------------------------------------------------


def under_wsgi(path: str, method: str = "GET", query: str = "") -> tuple[int | None, dict[str, str], bytes]:
    exchange = Exchange(WSGIHandler(), environ(path, method, QUERY_STRING=query, HTTP_HOST="testserver"))
    body = exchange.drain()
    return exchange.status, exchange.headers, body


def under_asgi(path: str, method: str = "GET", query: str = "") -> tuple[int, dict[str, str], bytes]:
    answer: list[Any] = []

    async def scenario() -> None:
        scope = http(path, method=method, query_string=query.encode(), headers=[(b"host", b"testserver")])
        connection = Connection(ASGIHandler(), scope)
        connection.push("http.request", body=b"", more_body=False)
        answer.extend(await connection.end())

    run(scenario)
    start, *parts = answer
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, b"".join(part.get("body", b"") for part in parts)


both = pytest.mark.parametrize("get", [under_wsgi, under_asgi])
Get = Callable[..., tuple[int, dict[str, str], bytes]]


def assert_refused(answer: tuple[int, dict[str, str], bytes], gate: str) -> None:
    status, headers, body = answer
    assert status == 503
    assert headers["content-type"] == "application/problem+json"
    assert headers["content-length"] == str(len(body))
    assert int(headers["retry-after"]) == json.loads(body)["retry_after"] >= 1
    assert json.loads(body)["gate"] == gate


# --- admission ------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(("path", "queries"), [("/", 1), ("/async", 2)])
@pytest.mark.leak("django-middleware", "nested")
def test_admits_and_counts_what_is_inside_once(get: Get, path: str, queries: int) -> None:
    status, _, body = get(path)
    assert (status, body) == (200, b"%d" % queries)
    assert project.seen == [1] * queries
    assert sum(project.web.stats().admitted.values()) == 1
    assert_at_rest(project.web)


@both
@pytest.mark.parametrize("path", ["/", "/async"])
def test_sheds_above_the_limit_without_a_line_in_the_log(
    get: Get, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Django would log each 503 as an error, and mail it."""
    with project.web:
        assert_refused(get(path), "web")
        status, headers, body = get(path, "HEAD")
        assert (status, body) == (503, b"")
        assert int(headers["content-length"]) > 0
        assert get("/healthz") == (200, {"content-type": "text/html; charset=utf-8"}, b"1")
    assert not caplog.records
    assert_at_rest(project.web)


@both
def test_the_priority_reaches_the_gates_inside(get: Get) -> None:
    assert get("/", query="priority=sheddable")[0] == 200
    assert get("/async", query="priority=vip")[0] == 200
    assert project.web.stats().admitted[Priority.SHEDDABLE] == 2
    assert project.db.stats().admitted[Priority.SHEDDABLE] == 3
    assert get("/")[0] == 200
    assert project.web.stats().admitted[Priority.CRITICAL] == 1
    assert project.db.stats().admitted[Priority.CRITICAL] == 1


# --- sheds from inside ----------------------------------------------------------------------------


@both
@pytest.mark.parametrize("middleware", [GATE, SHED])
@pytest.mark.parametrize("path", ["/", "/async"])
def test_a_shed_in_a_view(get: Get, path: str, middleware: str, caplog: pytest.LogCaptureFixture) -> None:
    project.db.set_limit(0)
    with override_settings(MIDDLEWARE=[middleware]):
        assert_refused(get(path), "db")
    assert not caplog.records
    assert_at_rest(project.web)


@both
@pytest.mark.parametrize("middleware", [GATE, SHED])
@pytest.mark.parametrize("path", ["/before", "/after"])
def test_a_shed_in_another_middleware(get: Get, path: str, middleware: str) -> None:
    """Django makes a 500 of it before anybody outside can see it."""
    with override_settings(MIDDLEWARE=[middleware, "django_project.InnerMiddleware"]):
        assert get(path)[0] == 200
        project.db.set_limit(0)
        assert_refused(get(path), "db")
    assert_at_rest(project.web)


@both
@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        pytest.param("/bug", "success", marks=pytest.mark.leak("django-middleware", "exception")),
        pytest.param("/async-bug", "success", marks=pytest.mark.leak("django-middleware", "exception")),
        pytest.param("/timeout", "overload", marks=pytest.mark.leak("django-middleware", "timeout")),
    ],
)
def test_other_errors_stay_what_they_are_and_tell_the_outcome(get: Get, path: str, outcome: str) -> None:
    assert get(path)[0] == 500
    assert released(project.web.stats()) == {outcome: 1}
    assert_at_rest(project.web)


@pytest.mark.leak("django-middleware", "base-exception")
def test_an_exit_in_a_view() -> None:
    with pytest.raises(SystemExit):
        under_wsgi("/exit")
    assert released(project.web.stats()) == {"ignore": 1}
    assert_at_rest(project.web)


@pytest.mark.leak("django-middleware", "cancel-after")
def test_a_client_that_leaves_while_the_view_runs() -> None:
    async def scenario() -> None:
        connection = Connection(ASGIHandler(), http("/wait", headers=[(b"host", b"testserver")]))
        connection.push("http.request", body=b"", more_body=False)
        while not project.inside.is_set():
            await asyncio.sleep(0)
        assert project.web.in_flight == 1
        connection.push("http.disconnect")
        await connection.end()

    run(scenario)
    assert released(project.web.stats()) == {"ignore": 1}
    assert_at_rest(project.web)


# --- streaming ------------------------------------------------------------------------------------


def test_d07_a_stream_holds_its_permit_until_it_is_closed() -> None:
    first = Exchange(WSGIHandler(), environ("/parts", HTTP_HOST="testserver"))
    for part in first.body:
        assert project.web.in_flight == 1
        assert_refused(under_wsgi("/"), "web")
        assert part == b"%d" % len(project.seen)
    assert project.web.in_flight == 1
    first.close()
    assert project.seen == [1, 1, 1]
    assert released(project.web.stats()) == {"success": 1}
    assert_at_rest(project.web)


@both
@pytest.mark.parametrize("path", ["/parts", "/async-parts"])
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_the_parts_of_a_stream_are_in_the_requests_context(get: Get, path: str) -> None:
    assert get(path, query="priority=sheddable")[::2] == (200, b"123")
    assert project.seen == [1, 1, 1]
    assert sum(project.web.stats().admitted.values()) == 1
    assert project.db.stats().admitted[Priority.SHEDDABLE] == 3
    assert_at_rest(project.web)


def test_nothing_of_a_stream_stays_in_the_servers_thread() -> None:
    first = Exchange(
        WSGIHandler(), environ("/parts", HTTP_HOST="testserver", QUERY_STRING="priority=sheddable")
    )
    next(iter(first.body))
    with project.db:
        pass
    assert project.db.stats().admitted[Priority.CRITICAL] == 1
    first.close()
    assert_at_rest(project.web)


@pytest.mark.leak("django-middleware", "client-gone")
@pytest.mark.parametrize("begun", [False, True])
def test_a_stream_that_is_closed_early(begun: bool) -> None:
    first = Exchange(WSGIHandler(), environ("/endless", HTTP_HOST="testserver"))
    if begun:
        next(iter(first.body))
    first.close()
    assert released(project.web.stats()) == {"ignore" if begun else "success": 1}
    assert_at_rest(project.web)


def test_a_shed_of_a_streams_first_part_comes_too_late() -> None:
    """Django has begun the response by then. (Behind `tidegate.wsgi.GateMiddleware` it would not.)"""
    project.db.set_limit(0)
    with pytest.raises(Shed):
        under_wsgi("/shed-first")
    assert_at_rest(project.web)


def test_a_file_stays_one_that_the_server_can_send() -> None:
    request = environ("/file", HTTP_HOST="testserver", **{"wsgi.file_wrapper": FileWrapper})
    first = Exchange(WSGIHandler(), request)
    assert isinstance(first.body, FileWrapper)
    assert project.web.in_flight == 1
    assert first.drain() == b"content"
    assert_at_rest(project.web)


def test_a_stream_that_another_middleware_drops() -> None:
    """Django does not close it; the garbage collector does."""
    with (
        pytest.warns(ResourceWarning, match="web"),
        override_settings(MIDDLEWARE=["test_web_django.Dropping", GATE]),
    ):
        assert under_wsgi("/parts")[2] == b"dropped"
        gc.collect()
    assert_at_rest(project.web)


class Dropping:
    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        self.get_response(request)
        return HttpResponse("dropped")


# --- a real server --------------------------------------------------------------------------------


@pytest.mark.leak("django-middleware", "client-gone")
def test_over_http() -> None:
    with (
        serving(ASGIHandler(), lifespan="off") as address,
        httpx.Client(base_url=f"http://{address}") as client,
    ):
        assert client.get("/").text == "1"
        until(lambda: project.web.in_flight == 0)
        with httpx.stream("GET", f"http://{address}/async-endless") as response:
            body = response.iter_raw(1024)
            next(body)
            assert project.web.in_flight == 1
            for _ in range(3):
                assert client.get("/").status_code == 503
            assert client.get("/healthz").text == "1"
        until(lambda: project.web.in_flight == 0)
        assert client.get("/").status_code == 200
        until(lambda: project.web.in_flight == 0)
    assert_at_rest(project.web)


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({}, r"TIDEGATE\['GATE'\] must be"),
        ({"GATE": "django_project.nothing"}, r"TIDEGATE\['GATE'\] must be .*nothing"),
        ({"GATE": "django_project.priority"}, r"TIDEGATE\['GATE'\] must be .* is <function"),
        ({"GATE": "django_project.web", "PRIORITIES": {}}, "TIDEGATE has GATE, .* and not PRIORITIES"),
        ({"GATE": "django_project.web", "STATUS": 500}, "TIDEGATE: status must be 503 or 429, got 500"),
        ({"GATE": "django_project.web", "PRIORITY": "urgent"}, "TIDEGATE: priority must be one of"),
        ({"GATE": "django_project.web", "PRIORITY": ["no.where"]}, "TIDEGATE: No module named 'no'"),
        (
            {"GATE": "django_project.web", "HEALTH_PATHS": "/up"},
            "TIDEGATE: health_paths must be a collection",
        ),
        ({"GATE": "django_project.web", "HEALTH_LIMIT": -1}, "TIDEGATE: .*-1"),
        ("django_project.web", "TIDEGATE must be a dict, got 'django_project.web'"),
    ],
)
def test_wrong_settings_are_told_when_the_server_starts(setting: Any, message: str) -> None:
    with override_settings(TIDEGATE=setting), pytest.raises(ImproperlyConfigured, match=message):
        WSGIHandler()


def test_settings() -> None:
    setting = {
        "GATE": {"limit": 0},
        "PRIORITY": ["django_project.priority", {"/async": "critical_plus"}],
        "HEALTH_PATHS": ["/"],
        "HEALTH_LIMIT": 1,
        "STATUS": 429,
    }
    with override_settings(TIDEGATE=setting):
        assert under_wsgi("/async")[0] == 429
        assert under_wsgi("/")[0] == 200


def test_sheds_alone_need_no_setting() -> None:
    project.db.set_limit(0)
    with override_settings(TIDEGATE={}, MIDDLEWARE=[SHED]):
        assert_refused(under_wsgi("/"), "db")
