"""Tidegate for Flask, through werkzeug's server and Flask's own client."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from flask import Blueprint, Flask, Response, stream_with_context
from gatekit import assert_at_rest, released, until
from tidegate import ConfigError, Gate, Priority, Shed
from tidegate._held import check_out
from tidegate.flask import Tidegate
from werkzeug.serving import make_server

FULL = Gate("db", limit=0)


@contextmanager
def serving(app: Flask) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def assert_refused(response, gate: str = "db") -> None:
    body = response.json() if callable(response.json) else response.json
    assert response.status_code == 503
    assert response.headers["content-type"] == "application/problem+json"
    assert int(response.headers["retry-after"]) == body["retry_after"] >= 1
    assert body["gate"] == gate


@pytest.fixture
def app() -> Flask:
    app = Flask(__name__)

    @app.get("/")
    @app.get("/healthz")
    def index() -> str:
        return "ok"

    return app


@pytest.fixture
def gate() -> Gate:
    return Gate("edge", limit=1)


def test_over_http(app: Flask, gate: Gate) -> None:
    Tidegate(app, gate)
    with serving(app) as address, httpx.Client(base_url=address) as client:
        assert client.get("/").text == "ok"
        until(lambda: gate.in_flight == 0)
        with gate:
            assert_refused(client.get("/"), "edge")
            assert client.head("/").status_code == 503
            assert client.get("/healthz").status_code == 200
    assert_at_rest(gate)


def test_a_factory_and_options(app: Flask, gate: Gate) -> None:
    tidegate = Tidegate(gate=gate, priority={"/reports": "sheddable"}, status=429)
    tidegate.init_app(app)
    assert app.extensions["tidegate"] is tidegate
    client = app.test_client()
    assert client.get("/reports").status_code == 404
    assert gate.stats().admitted[Priority.SHEDDABLE] == 1
    gate.set_limit(0)
    assert client.get("/").status_code == 429


def test_a_second_one_is_refused(app: Flask, gate: Gate) -> None:
    Tidegate(app, gate)
    with pytest.raises(RuntimeError, match="has a Tidegate already"):
        Tidegate(app, gate)


def test_wrong_options_change_nothing(app: Flask, gate: Gate) -> None:
    for gate_or_none in (gate, None):
        with pytest.raises(ConfigError, match="status must be"):
            Tidegate(app, gate_or_none, status=404)
    Tidegate(app, gate)


@pytest.mark.parametrize("edge", [None, 5])
@pytest.mark.parametrize("late", [False, True])
def test_a_shed_is_a_503_wherever_it_comes_from(edge: int | None, late: bool) -> None:
    app = Flask(__name__)
    app.testing = True  # other errors are raised
    gate = None if edge is None else Gate("edge", limit=edge)
    if not late:
        Tidegate(app, gate)
    blueprint = Blueprint("b", __name__)

    @app.get("/view")
    @blueprint.get("/blueprint")
    def view() -> str:
        with FULL:
            return "unreachable"

    @app.get("/guarded")
    @FULL.guard
    def guarded() -> str:
        return "unreachable"

    @app.get("/stream")
    def stream() -> Response:
        @FULL.guard
        def rows() -> Iterator[str]:
            yield "unreachable"

        return Response(stream_with_context(rows()))

    @app.before_request
    def before() -> None:
        from flask import request

        if request.path == "/before":
            with FULL:
                pass

    app.register_blueprint(blueprint)
    if late:
        Tidegate(app, gate)
    client = app.test_client()
    for path in ("/view", "/blueprint", "/guarded", "/stream", "/before"):
        response = client.get(path)
        assert_refused(response)
        response.close()
    if gate is not None:
        assert_at_rest(gate)


def test_handlers_of_ones_own_come_first(app: Flask) -> None:
    Tidegate(app)

    @app.get("/db")
    def view() -> str:
        with FULL:
            return "unreachable"

    @app.errorhandler(Shed)
    def mine(shed: Shed) -> tuple[str, int]:
        return "later", 503

    assert app.test_client().get("/db").text == "later"


@pytest.mark.leak("flask", "exception")
def test_an_error_in_a_view_frees_the_permit(app: Flask, gate: Gate) -> None:
    @app.get("/bug")
    def bug() -> str:
        raise ValueError("a bug")

    app.testing = True
    Tidegate(app, gate)
    with pytest.raises(ValueError, match="a bug"):
        app.test_client().get("/bug")
    app.testing = False
    # Flask's client leaves an answer open that is not buffered, and a permit with it.
    assert app.test_client().get("/bug", buffered=True).status_code == 500
    assert_at_rest(gate)


@pytest.mark.leak("flask", "base-exception")
def test_an_exit_in_a_view_frees_the_permit(app: Flask, gate: Gate) -> None:
    @app.get("/exit")
    def leave() -> str:
        raise SystemExit

    Tidegate(app, gate)
    with pytest.raises(SystemExit):
        app.test_client().get("/exit")
    assert_at_rest(gate)


@pytest.mark.leak("flask", "nested")
def test_what_a_view_and_its_stream_check_out_is_counted_once(app: Flask, gate: Gate) -> None:
    seen = []

    def query() -> str:
        hold = check_out(gate)
        seen.append(gate.in_flight)
        hold.leave()
        return "row"

    @app.get("/rows")
    def rows() -> Response:
        query()
        response = Response(stream_with_context(query() for _ in range(3)))
        response.call_on_close(query)
        return response

    Tidegate(app, gate)
    response = app.test_client().get("/rows", buffered=True)
    assert response.text == "rowrowrow"
    assert seen == [1] * 5
    assert sum(gate.stats().admitted.values()) == 1
    assert_at_rest(gate)


@pytest.mark.leak("flask", "client-gone")
def test_a_stream_holds_its_permit_until_its_client_leaves(app: Flask, gate: Gate) -> None:
    @app.get("/endless")
    def endless() -> Response:
        def parts() -> Iterator[bytes]:
            while True:
                yield b"x" * 65536

        return Response(parts())

    Tidegate(app, gate)
    with serving(app) as address:
        with httpx.stream("GET", f"{address}/endless") as response:
            body = response.iter_raw(1024)
            for _ in range(2):
                next(body)
                assert gate.in_flight == 1
                assert httpx.get(address).status_code == 503
        until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


def test_a_shed_after_the_request_is_a_500_of_flasks(app: Flask, gate: Gate) -> None:
    """As the docs say."""

    @app.after_request
    def after(response: Response) -> Response:
        with FULL:
            return response

    Tidegate(app, gate)
    assert app.test_client().get("/", buffered=True).status_code == 500
    assert_at_rest(gate)
