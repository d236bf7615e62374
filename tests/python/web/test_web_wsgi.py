"""D08: under WSGI a permit is held until close(), which comes once, early, late, or never."""

import gc
import io
import threading
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any
from wsgiref.util import FileWrapper

import pytest
from gatekit import assert_at_rest, released
from tidegate import ConfigError, Gate, Outcome, Priority, Shed, use_priority
from tidegate._held import check_out
from tidegate.wsgi import GateMiddleware, ShedMiddleware
from wsgi_driver import Exchange, assert_refused, environ, ok, status_of


class Body:
    """Two parts; it counts how often it is closed, which its iterator is not."""

    def __init__(self, *parts: bytes, error: BaseException | None = None) -> None:
        self.parts = parts or (b"one", b"two")
        self.error = error
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        yield from self.parts
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed += 1


class App:
    """Answers with a body, or raises; counts how full its gate is while it works."""

    def __init__(self, body: Any = None, error: BaseException | None = None, start: bool = True) -> None:
        self.body = Body() if body is None else body
        self.error = error
        self.start = start

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if self.start:
            start_response("200 OK", [("Content-Type", "text/plain"), ("X-Mine", "1")])
        if self.error is not None:
            raise self.error
        return self.body


@pytest.fixture
def gate() -> Gate:
    return Gate("edge", limit=1)


def a_shed() -> Shed:
    return Shed("db", "limit", "critical", 20, 20, 0.4)


# --- admission ------------------------------------------------------------------------------------


def test_admits_up_to_the_limit_and_answers_503_above(gate: Gate) -> None:
    app = GateMiddleware(ok, gate)
    assert status_of(app) == 200
    with gate:
        assert_refused(app)
    assert status_of(app) == 200
    assert_at_rest(gate)


def test_a_refused_head_has_no_body_and_the_length_of_a_get() -> None:
    refused = Exchange(GateMiddleware(ok, Gate("edge", limit=0)), environ(method="HEAD"))
    assert (refused.drain(), refused.status) == (b"", 503)
    assert int(refused.headers["content-length"]) > 0


def test_health_paths_pass_and_paths_are_utf8() -> None:
    app = GateMiddleware(ok, Gate("edge", limit=0), health_paths=["/gesund/ä"])
    assert status_of(app, environ("/gesund/ä".encode().decode("latin-1"))) == 200
    assert_refused(app, environ("/healthz"))


def test_priority_by_environ(gate: Gate) -> None:
    app = GateMiddleware(ok, gate, priority=lambda environ: environ["HTTP_X_PRIORITY"])
    status_of(app, environ(HTTP_X_PRIORITY="critical_plus"))
    assert gate.stats().admitted[Priority.CRITICAL_PLUS] == 1


def test_wrong_arguments_are_told_at_once(gate: Gate) -> None:
    with pytest.raises(ConfigError, match="status must be 503 or 429, got 500"):
        GateMiddleware(ok, gate, status=500)
    with pytest.raises(ConfigError, match="status must be 503 or 429, got 404"):
        ShedMiddleware(ok, status=404)


def test_status_429() -> None:
    app = GateMiddleware(ok, Gate("edge", limit=0), status=429)
    assert status_of(app) == 429


# --- D08: release in close() ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["list", "generator", "iterable with close"])
def test_d08_a_body_holds_the_permit_until_it_is_closed(gate: Gate, kind: str) -> None:
    body = Body()
    made = {"list": [b"one", b"two"], "generator": (part for part in body.parts)}.get(kind, body)
    first = Exchange(GateMiddleware(App(made), gate))
    for _ in range(2):
        next(iter(first.body))
        assert gate.in_flight == 1
        assert_refused(GateMiddleware(ok, gate))
    with pytest.raises(StopIteration):
        next(iter(first.body))
    assert gate.in_flight == 1
    first.close()
    assert gate.in_flight == 0
    first.close()
    assert body.closed == (kind == "iterable with close")
    assert released(gate.stats()) == {"success": 1}
    assert_at_rest(gate)


@pytest.mark.leak("wsgi", "client-gone")
def test_d08_a_server_that_stops_early(gate: Gate) -> None:
    body = Body()
    first = Exchange(GateMiddleware(App(body), gate))
    next(iter(first.body))
    first.close()
    assert body.closed == 1
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


@pytest.mark.parametrize("body", [[b"one"], Body()])
def test_d08_close_without_iteration(gate: Gate, body: Any) -> None:
    Exchange(GateMiddleware(App(body), gate)).close()
    assert getattr(body, "closed", 1) == 1
    assert released(gate.stats()) == {"success": 1}
    assert_at_rest(gate)


@pytest.mark.leak("wsgi", "client-gone")
def test_d08_a_generator_is_closed_where_it_stands(gate: Gate) -> None:
    ended = []

    def body() -> Iterator[bytes]:
        try:
            yield b"one"
            yield b"two"
        finally:
            ended.append(gate.in_flight)

    first = Exchange(GateMiddleware(App(body()), gate))
    next(iter(first.body))
    first.close()
    assert ended == [1]
    assert_at_rest(gate)


ERRORS = [
    pytest.param(ValueError("a bug"), "success", marks=pytest.mark.leak("wsgi", "exception")),
    pytest.param(SystemExit(1), "ignore", marks=pytest.mark.leak("wsgi", "base-exception")),
    pytest.param(TimeoutError("the database"), "overload", marks=pytest.mark.leak("wsgi", "timeout")),
    pytest.param(KeyboardInterrupt(), "ignore", marks=pytest.mark.leak("wsgi", "keyboard-interrupt")),
]


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize(("error", "outcome"), ERRORS)
def test_d08_an_application_that_raises(gate: Gate, error: BaseException, outcome: str, start: bool) -> None:
    with pytest.raises(type(error)):
        Exchange(GateMiddleware(App(error=error, start=start), gate))
    assert released(gate.stats()) == {outcome: 1}
    assert_at_rest(gate)


@pytest.mark.parametrize(("error", "outcome"), ERRORS)
def test_d08_an_iteration_that_raises(gate: Gate, error: BaseException, outcome: str) -> None:
    body = Body(error=error)
    with pytest.raises(type(error)):
        Exchange(GateMiddleware(App(body), gate)).drain()
    assert body.closed == 1
    assert released(gate.stats()) == {outcome: 1}
    assert_at_rest(gate)


@pytest.mark.parametrize(("error", "outcome"), ERRORS)
def test_d08_a_close_that_raises(gate: Gate, error: BaseException, outcome: str) -> None:
    class Stubborn(Body):
        def close(self) -> None:
            raise error

    exchange = Exchange(GateMiddleware(App(Stubborn()), gate))
    with pytest.raises(type(error)):
        exchange.drain()
    assert released(gate.stats()) == {outcome: 1}
    assert_at_rest(gate)


@pytest.mark.parametrize("body", [None, 7])
def test_what_is_no_body_frees_the_permit(gate: Gate, body: Any) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> Any:
        return body

    with pytest.raises(TypeError, match="not iterable"):
        Exchange(GateMiddleware(app, gate)).drain()
    assert_at_rest(gate)


@pytest.mark.leak("wsgi", "gc")
def test_d08_a_server_that_never_closes(gate: Gate) -> None:
    first = Exchange(GateMiddleware(App(), gate))
    next(iter(first.body))
    del first
    gc.collect()
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


@pytest.mark.leak("wsgi", "gc")
def test_d08_a_server_that_never_begins(gate: Gate) -> None:
    first = Exchange(GateMiddleware(App(), gate))
    with pytest.warns(ResourceWarning, match="edge"):
        del first
        gc.collect()
    gc.collect()
    assert gate.stats().collected == 1
    assert_at_rest(gate)


def test_closed_in_another_thread(gate: Gate) -> None:
    first = Exchange(GateMiddleware(App(), gate, priority="sheddable"))
    next(iter(first.body))
    thread = threading.Thread(target=first.close)
    thread.start()
    thread.join()
    assert_at_rest(gate)


def test_the_files_of_a_server_stay_its_own(gate: Gate) -> None:
    """So that it can send them by sendfile."""
    file = io.BytesIO(b"content")
    body = FileWrapper(file)
    exchange = Exchange(GateMiddleware(App(body), gate), environ(**{"wsgi.file_wrapper": FileWrapper}))
    assert exchange.body is body
    assert (exchange.status, gate.in_flight) == (200, 1)
    exchange.close()
    assert file.closed
    assert_at_rest(gate)


def test_what_an_application_writes_by_itself(gate: Gate) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        write = start_response("200 OK", [("Content-Type", "text/plain")])
        write(b"one")
        return [b"two"]

    exchange = Exchange(GateMiddleware(app, gate))
    assert exchange.drain() == b"onetwo"
    assert exchange.starts == 1
    assert_at_rest(gate)


def test_an_application_may_take_back_what_it_started(gate: Gate) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        try:
            raise ValueError
        except ValueError as error:
            start_response(
                "500 Oh", [("Content-Type", "text/html")], (ValueError, error, error.__traceback__)
            )
        return [b"sorry"]

    exchange = Exchange(GateMiddleware(app, gate))
    assert exchange.drain() == b"sorry"
    assert (exchange.status, exchange.starts) == (500, 1)


# --- sheds from inside ----------------------------------------------------------------------------


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("wrap", [lambda error: error, lambda error: ExceptionGroup("", [error, error])])
def test_a_shed_inside_before_the_body_is_a_503(gate: Gate, wrap: Any, start: bool) -> None:
    app = App(error=wrap(a_shed()), start=start)
    assert_refused(GateMiddleware(app, gate))
    assert_refused(ShedMiddleware(app))
    assert gate.stats().released[Outcome.IGNORE] == 1  # it says nothing about what the edge protects
    assert_at_rest(gate)


def test_a_shed_of_the_first_part_is_a_503(gate: Gate) -> None:
    full = Gate("db", limit=0)

    @full.guard
    def rows() -> Iterator[bytes]:
        yield b"row"

    def app(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Type", "text/csv"), ("Content-Length", "4711")])
        return rows()

    assert_refused(GateMiddleware(app, gate))
    assert_refused(ShedMiddleware(app))
    assert_at_rest(gate)


def test_a_shed_after_the_body_began_is_raised(gate: Gate) -> None:
    body = Body(error=a_shed())
    exchange = Exchange(GateMiddleware(App(body), gate))
    with pytest.raises(Shed):
        exchange.drain()
    assert (exchange.status, exchange.starts, body.closed) == (200, 1, 1)
    assert_at_rest(gate)


def test_a_shed_after_a_write_is_raised(gate: Gate) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])(b"one")
        raise a_shed()

    with pytest.raises(Shed):
        Exchange(GateMiddleware(app, gate))
    assert_at_rest(gate)


# --- D12: two gates, one around the other ---------------------------------------------------------


@pytest.mark.parametrize("full", ["outer", "inner"])
def test_d12_where_one_says_no_the_other_gives_back(full: str) -> None:
    outer, inner = Gate("outer", limit=2), Gate("inner", limit=2)
    app = GateMiddleware(GateMiddleware(ok, inner), outer)
    (outer if full == "outer" else inner).set_limit(0)
    for _ in range(100):
        assert_refused(app)
    for gate in (outer, inner):
        gate.set_limit(2)
    assert status_of(app) == 200
    for gate in (outer, inner):
        assert_at_rest(gate)


@pytest.mark.parametrize("app", [App(error=ValueError()), App(Body(error=ValueError()))])
def test_d12_an_exception_inside_frees_both(app: App) -> None:
    outer, inner = Gate("outer", limit=1), Gate("inner", limit=1)
    for _ in range(100):
        with pytest.raises(ValueError):
            Exchange(GateMiddleware(GateMiddleware(app, inner), outer)).drain()
    for gate in (outer, inner):
        assert_at_rest(gate)


# --- the request's context ------------------------------------------------------------------------


def context_of_thread() -> dict[str, Any]:
    return {var.name: value for var, value in copy_context().items() if var.name.startswith("tidegate")}


def held(gate: Gate) -> int:
    """How much is in flight while a pool hook asks, and what it gives back at once."""
    hold = check_out(gate)
    try:
        return gate.in_flight
    finally:
        hold.leave()


@pytest.mark.leak("wsgi", "nested")
def test_the_request_is_marked_in_each_of_its_steps(gate: Gate) -> None:
    seen = []

    class Rows(Body):
        def __iter__(self) -> Iterator[bytes]:
            for part in self.parts:
                seen.append(held(gate))
                yield part

        def close(self) -> None:
            seen.append(held(gate))

    def app(environ: dict[str, Any], start_response: Any) -> Rows:
        start_response("200 OK", [])
        seen.append(held(gate))
        return Rows()

    Exchange(GateMiddleware(app, gate)).drain()
    assert seen == [1, 1, 1, 1]
    assert sum(gate.stats().admitted.values()) == 1
    assert_at_rest(gate)


@pytest.mark.parametrize("closing", [True, False])
def test_nothing_of_the_request_stays_in_the_servers_thread(gate: Gate, closing: bool) -> None:
    db = Gate("db", limit=20)

    def rows() -> Iterator[bytes]:
        with use_priority("critical_plus"):
            for part in (b"one", b"two"):
                with db:
                    yield part
        with db:
            yield b"three"

    before = context_of_thread()
    exchange = Exchange(GateMiddleware(App(rows()), gate, priority="sheddable"))
    assert context_of_thread() == before
    for _ in range(3):
        next(exchange.body)
        assert {**context_of_thread(), **before} == context_of_thread()
        with db:
            pass  # the server's own
    if closing:
        exchange.close()
    admitted = db.stats().admitted
    # The block inside the generator holds across its parts, and only there.
    assert (admitted[Priority.CRITICAL_PLUS], admitted[Priority.SHEDDABLE]) == (2, 1)
    assert admitted[Priority.CRITICAL] == 3
    del exchange
    gc.collect()
    assert status_of(GateMiddleware(ok, gate)) == 200
    assert gate.stats().admitted[Priority.CRITICAL] == 1
    assert_at_rest(gate)


def test_what_the_application_keeps_in_its_thread_stays_there(gate: Gate) -> None:
    """As Django keeps the connections of its caches."""
    from contextvars import ContextVar

    kept: ContextVar[int] = ContextVar("kept", default=0)

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        kept.set(kept.get() + 1)
        return [b"ok"]

    def server() -> int:
        for _ in range(3):
            status_of(GateMiddleware(app, gate))
        return kept.get()

    assert copy_context().run(server) == 3
