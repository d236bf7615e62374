"""Which priority a request has, whoever says so: routes, a header of a trusted proxy, a function."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from driver import answer, http, ok, run, status_of
from gatekit import PATIENCE, assert_at_rest, until
from loopback import _Server, serving
from tidegate import Classifier, ConfigError, Gate, Priority, use_priority
from tidegate._held import check_out
from tidegate.asgi import GateMiddleware, Receive, Scope, Send, TrustedHeader
from tidegate.priorities import Request, priority_source

HEADER = "X-Request-Priority"


def asked(
    source: Any, method: str = "GET", path: str = "/", client: str | None = None, **headers: str
) -> Any:
    native = {"method": method, "path": path}
    found = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    return priority_source(source)(Request(method, path, found.get, client, native))


# --- routes ---------------------------------------------------------------------------------------

ROUTES = {
    "POST /orders": "critical_plus",
    "get /reports/*": "sheddable",
    "/static/*": Priority.SHEDDABLE_PLUS,
    "/a.b/*/c": "sheddable",
    "DELETE *": "critical_plus",
    "/reports/yearly": "critical_plus",  # after a route that matches it, too
}


@pytest.mark.parametrize(
    ("method", "path", "priority"),
    [
        ("POST", "/orders", "critical_plus"),
        ("GET", "/orders", None),
        ("POST", "/orders/", None),
        ("GET", "/reports/", "sheddable"),
        ("GET", "/reports/a/b\nc", "sheddable"),
        ("POST", "/reports/a", None),
        ("HEAD", "/static/x.css", "sheddable_plus"),
        ("GET", "/a.b/x/y/c", "sheddable"),
        ("GET", "/axb/x/c", None),
        ("DELETE", "/anything", "critical_plus"),
        ("GET", "/reports/yearly", "sheddable"),
    ],
)
def test_a_mapping_of_routes(method: str, path: str, priority: str | None) -> None:
    assert asked(ROUTES, method, path) == priority


@pytest.mark.parametrize("route", ["reports", "GET reports/*", "GET  /two", "G3T /x", "", "GET", "1 /x"])
def test_a_bad_route_is_told_at_once(route: str) -> None:
    with pytest.raises(ConfigError, match="a route must be"):
        priority_source({route: "sheddable"})


def test_a_long_path_is_no_work() -> None:
    """A search that tries every combination takes minutes for this one."""
    route = {"/*/reports/*/export": "sheddable"}
    path = "/reports" * 100_000
    before = time.monotonic()
    assert asked(route, path=path) is None
    assert asked(route, path=path + "/x/export") == "sheddable"
    assert time.monotonic() - before < PATIENCE


@pytest.mark.parametrize(
    ("route", "matches", "others"),
    [
        ("/*/b/*/c", ["/a/b/x/c", "/b/b/b/c/c", "/a/b/c/b/x/c"], ["/b/x/c", "/a/b/c", "/a/b/x/c/"]),
        ("/**/x", ["//x", "/a/x"], ["/x"]),
        ("*", ["/", "/a\nb"], []),
        ("/ab*ba", ["/abba", "/ab/ba"], ["/aba"]),
        ("/*.(b)", ["/a.(b)"], ["/a.b", "/axb"]),
    ],
)
def test_stars(route: str, matches: list[str], others: list[str]) -> None:
    assert [asked({route: "sheddable"}, path=path) for path in matches] == ["sheddable"] * len(matches)
    assert [asked({route: "sheddable"}, path=path) for path in others] == [None] * len(others)


def test_a_bad_priority_is_told_at_once() -> None:
    for source in ("urgent", {"/": "urgent"}, ["sheddable", "urgent"]):
        with pytest.raises(ConfigError, match="urgent"):
            priority_source(source)
    with pytest.raises(TypeError, match="got 7"):
        priority_source(7)  # type: ignore[arg-type]


# --- rules ----------------------------------------------------------------------------------------

RULES = Classifier(
    [
        {"match": {"path": "/reports/*", "header.X-Plan": ["free", "trial"]}, "priority": "sheddable"},
        {"match": {"method": "post", "path": "/orders"}, "priority": "critical_plus"},
        {"match": {"client": "10.*"}, "priority": "sheddable_plus"},
    ]
)


@pytest.mark.parametrize(
    ("request_", "priority"),
    [
        ({"path": "/reports/1", "X_Plan": "trial"}, "sheddable"),
        ({"path": "/reports/1", "X_Plan": "paid"}, None),
        ({"path": "/reports/1"}, None),
        ({"path": "/orders", "method": "POST"}, "critical_plus"),
        ({"path": "/orders"}, None),
        ({"client": "10.1.2.3"}, "sheddable_plus"),
        ({"client": ""}, None),
    ],
)
def test_the_rules_of_a_classifier(request_: dict[str, Any], priority: str | None) -> None:
    assert asked(RULES, **request_) == priority


def test_its_default_decides_before_what_comes_behind_it() -> None:
    rules = [{"match": {"path": "/pay"}, "priority": "critical_plus"}]
    assert asked([Classifier(rules), "sheddable"]) == "sheddable"
    assert asked([Classifier(rules, default="sheddable_plus"), "sheddable"]) == "sheddable_plus"
    assert asked(["sheddable", RULES], "POST", "/orders") == "sheddable"


def test_a_client_without_an_address_matches_nothing() -> None:
    anybody = Classifier([{"match": {"client": "*"}, "priority": "sheddable"}])
    assert asked(anybody, client="::1") == "sheddable"
    assert asked(anybody, client=None) is None
    assert asked(anybody, client="") is None


def test_only_what_a_rule_names_is_looked_for() -> None:
    looked_for: list[str] = []

    def header(name: str) -> str | None:
        looked_for.append(name)
        return "free"

    decide = priority_source(Classifier([{"match": {"header.X-Plan": "free"}, "priority": "sheddable"}]))
    assert decide(Request("GET", "/", header, None, None)) == "sheddable"
    assert priority_source({"/": "critical_plus"})(Request("GET", "/", header, None, None)) == "critical_plus"
    assert looked_for == ["x-plan"]


@pytest.mark.parametrize("name", ["tenant", "header", "header.", "header.x plan", "headers.x-plan", "Path"])
def test_what_an_edge_does_not_know_is_told_at_once(name: str) -> None:
    rules = Classifier([{"match": {name: "*"}, "priority": "sheddable"}])
    with pytest.raises(ConfigError, match=r"may name method, path, client and header\.NAME, got"):
        priority_source(["sheddable", rules])


def test_the_rules_at_a_real_edge() -> None:
    gate = Gate("edge", limit=10)

    async def scenario() -> None:
        free = [(b"x-plan", b"free")]
        app = GateMiddleware(ok, gate, priority=RULES)
        await status_of(app, http(path="/reports/1", headers=free))
        await status_of(app, http(path="/reports/1", headers=free * 2))  # "free,free" is another plan
        await status_of(app, http(client=["10.0.0.1", 1]))

    run(scenario)
    admitted = gate.stats().admitted
    assert [admitted[priority] for priority in Priority] == [0, 1, 1, 1]


# --- functions and sequences ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "priority"),
    [
        ("critical_plus", "critical_plus"),
        (Priority.SHEDDABLE_PLUS, "sheddable_plus"),
        ("non-essential", "sheddable"),
        (None, None),
        ("vip", "sheddable"),
        ("", "sheddable"),
        ("CRITICAL_PLUS", "sheddable"),
    ],
)
def test_a_function_of_the_native_request(said: Any, priority: str | None) -> None:
    assert asked(lambda native: said if native["path"] == "/" else "never") == priority


def test_an_async_function_is_told_at_once() -> None:
    async def priority(scope: Scope) -> str:
        return "sheddable"

    with pytest.raises(TypeError, match="must not be async"):
        priority_source(priority)  # type: ignore[arg-type]


def test_the_first_of_a_sequence_that_knows() -> None:
    sources = [
        {"/pay": "critical_plus"},
        TrustedHeader(HEADER, "10.0.0.1"),
        lambda native: None,
        "sheddable_plus",
    ]
    assert asked(sources, path="/pay") == "critical_plus"
    assert asked(sources, client="10.0.0.1", x_request_priority="sheddable") == "sheddable"
    assert asked(sources, client="10.0.0.2", x_request_priority="sheddable") == "sheddable_plus"
    assert asked([]) is None


def test_a_function_that_raises_admits_nobody() -> None:
    gate = Gate("edge", limit=1)

    def fail(scope: Scope) -> str:
        raise LookupError("a bug")

    async def scenario() -> None:
        with pytest.raises(LookupError):
            await status_of(GateMiddleware(ok, gate, priority=fail), http())

    run(scenario)
    assert_at_rest(gate)


# --- a header that is believed only from a proxy --------------------------------------------------


@pytest.mark.parametrize(
    ("proxies", "client", "believed"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        (["10.0.0.0/8", "::1"], "10.9.9.9", True),
        (["10.0.0.0/8", "::1"], "::1", True),
        (["10.0.0.0/8"], "11.0.0.1", False),
        (["10.0.0.0/8"], "::ffff:10.0.0.1", True),
        (["10.0.0.0/8"], "::ffff:11.0.0.1", False),
        (["10.0.0.0/8"], "testclient", False),
        (["10.0.0.0/8"], None, False),
        (["10.0.0.0/8"], "", False),
        ("unix", None, True),
        ("unix", "", True),
        ("unix", "127.0.0.1", False),
        ("*", "8.8.8.8", True),
        ("*", None, True),
        ([], "127.0.0.1", False),
    ],
)
def test_who_is_believed(proxies: Any, client: str | None, believed: bool) -> None:
    header = TrustedHeader(HEADER, proxies)
    said = asked(header, client=client, x_request_priority="critical_plus")
    assert said == ("critical_plus" if believed else None)
    assert asked(header, client=client) is None


@pytest.mark.parametrize("proxy", ["localhost", "10.0.0.1/33", "10.0.0.1/8", "", "10.0.0.0/8 "])
def test_what_is_no_proxy_is_told_at_once(proxy: str) -> None:
    with pytest.raises(ConfigError, match="proxies must be addresses"):
        TrustedHeader(HEADER, [proxy])


@pytest.mark.parametrize("name", ["", "X Priority", "Priorit\u00e4t", "X-Priority:"])
def test_what_is_no_header_is_told_at_once(name: str) -> None:
    with pytest.raises(ConfigError, match="name must be one that a header can have"):
        TrustedHeader(name, "*")


def test_a_proxy_may_be_a_network_of_ipaddress_and_not_its_number() -> None:
    assert asked(TrustedHeader("p", [ip_network("10.0.0.0/8")]), client="10.0.0.1", p="sheddable")  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="proxies must be addresses"):
        TrustedHeader("p", [10])  # type: ignore[list-item]


def test_a_header_that_comes_twice_is_nobodys_privilege() -> None:
    """A client that puts its own beside the proxy's is not believed for it."""
    gate = Gate("edge", limit=10)
    app = GateMiddleware(ok, gate, priority=TrustedHeader(HEADER, "10.0.0.1"))
    name = HEADER.lower().encode()
    twice = [(name, b"critical_plus"), (name, b"critical_plus")]

    async def scenario() -> None:
        await status_of(app, http(client=["10.0.0.1", 1], headers=twice))
        await status_of(app, http(client=["10.0.0.1", 1], headers=twice[:1]))

    run(scenario)
    admitted = gate.stats().admitted
    assert (admitted[Priority.SHEDDABLE], admitted[Priority.CRITICAL_PLUS]) == (1, 1)


# --- behind a real server -------------------------------------------------------------------------


def admitted_as(gate: Gate, ask: Any) -> str:
    """The priority that the request had."""
    before = gate.stats().admitted
    assert ask().status_code == 200
    until(lambda: gate.in_flight == 0)
    after = gate.stats().admitted
    (priority,) = (priority for priority in after if after[priority] > before[priority])
    return str(priority)


def test_uvicorn_hides_the_proxy_behind_the_address_that_it_forwards_for() -> None:
    """uvicorn's proxy_headers, on by default for 127.0.0.1: the client is then whom the proxy names."""
    gate = Gate("edge", limit=10)
    spoofed = {HEADER: "critical_plus"}
    forwarded = {**spoofed, "X-Forwarded-For": "203.0.113.7"}
    app = GateMiddleware(ok, gate, priority=TrustedHeader(HEADER, "127.0.0.1"))
    with serving(app, lifespan="off") as address:
        assert admitted_as(gate, lambda: httpx.get(f"http://{address}", headers=spoofed)) == "critical_plus"
        assert admitted_as(gate, lambda: httpx.get(f"http://{address}", headers=forwarded)) == "critical"
    with serving(app, lifespan="off", proxy_headers=False) as address:
        assert admitted_as(gate, lambda: httpx.get(f"http://{address}", headers=forwarded)) == "critical_plus"
    app = GateMiddleware(ok, gate, priority=TrustedHeader(HEADER, "*"))
    with serving(app, lifespan="off") as address:
        assert admitted_as(gate, lambda: httpx.get(f"http://{address}", headers=forwarded)) == "critical_plus"
    app = GateMiddleware(ok, gate, priority=TrustedHeader(HEADER, "10.0.0.0/8"))
    with serving(app, lifespan="off") as address:
        assert admitted_as(gate, lambda: httpx.get(f"http://{address}", headers=spoofed)) == "critical"


@contextmanager
def on_unix_socket(app: Any, path: Path) -> Iterator[httpx.Client]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        server = _Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=2))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            assert server.ready.wait(10)
            with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://test") as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(10)


def test_a_proxy_on_a_unix_socket(tmp_path: Path) -> None:
    gate = Gate("edge", limit=10)
    for proxies, priority in (("unix", "critical_plus"), ("127.0.0.1", "critical")):
        app = GateMiddleware(ok, gate, priority=TrustedHeader(HEADER, proxies))
        with on_unix_socket(app, tmp_path / priority) as client:
            assert admitted_as(gate, lambda: client.get("/", headers={HEADER: "critical_plus"})) == priority


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_request_does_not_have_the_priority_of_an_earlier_one_on_its_connection(loop: str) -> None:
    """asyncio lets a server's callbacks run in a copy of an earlier request's context."""
    gate, db = Gate("edge", limit=10), Gate("db", limit=10)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        check_out(db).leave()
        await ok(scope, receive, send)

    gated = GateMiddleware(app, gate, priority={"POST /*": "sheddable"})
    with (
        serving(gated, lifespan="off", loop=loop) as address,
        httpx.Client(base_url=f"http://{address}") as client,
    ):
        # An upload, since the server stops and resumes reading in the request's own task.
        assert admitted_as(gate, lambda: client.post("/", content=b"x" * 2_000_000)) == "sheddable"
        assert admitted_as(gate, lambda: client.get("/")) == "critical"
    admitted = db.stats().admitted
    assert (admitted[Priority.SHEDDABLE], admitted[Priority.CRITICAL]) == (1, 1)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_nor_of_one_that_is_still_at_work(loop: str) -> None:
    """A background task after an upload: the next request on the connection comes while it runs."""
    gate, done = Gate("edge", limit=10), threading.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await ok(scope, receive, send)
        while scope["method"] == "POST" and not done.is_set():
            await asyncio.sleep(0.001)

    gated = GateMiddleware(app, gate, priority={"POST /*": "critical_plus"})
    with (
        serving(gated, lifespan="off", loop=loop) as address,
        httpx.Client(base_url=f"http://{address}") as client,
    ):
        assert client.post("/", content=b"x" * 2_000_000).status_code == 200
        assert client.get("/").status_code == 200
        done.set()
        until(lambda: gate.in_flight == 0)
    admitted = gate.stats().admitted
    assert (admitted[Priority.CRITICAL_PLUS], admitted[Priority.CRITICAL]) == (1, 1)
    assert_at_rest(gate)


# --- the gates inside -----------------------------------------------------------------------------


def test_it_reaches_the_pool_hook() -> None:
    gate, pool = Gate("edge", limit=10), Gate("pool", limit=10)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        check_out(pool).leave()
        await ok(scope, receive, send)

    async def scenario() -> None:
        for said in (b"sheddable", b"critical_plus", b"vip"):
            headers = [(HEADER.lower().encode(), said)]
            await status_of(
                GateMiddleware(app, gate, priority=TrustedHeader(HEADER, "*")), http(headers=headers)
            )

    run(scenario)
    admitted = pool.stats().admitted
    assert (admitted[Priority.SHEDDABLE], admitted[Priority.CRITICAL_PLUS]) == (2, 1)
    assert_at_rest(pool)


def test_the_context_decides_where_nobody_else_knows() -> None:
    """Also after a query by a middleware outside, whose permit is gone."""
    gate, pool = Gate("edge", limit=10), Gate("pool", limit=10)

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        check_out(pool).leave()
        await ok(scope, receive, send)

    async def outer(scope: Scope, receive: Receive, send: Send) -> None:
        with use_priority("sheddable"):
            check_out(pool).leave()
            await GateMiddleware(inner, gate)(scope, receive, send)

    run(lambda: answer(outer, http()))
    assert gate.stats().admitted[Priority.SHEDDABLE] == 1
    assert pool.stats().admitted[Priority.SHEDDABLE] == 2


def test_an_edge_inside_another_keeps_its_priority() -> None:
    outer, inner = Gate("outer", limit=10), Gate("inner", limit=10)
    app = GateMiddleware(GateMiddleware(ok, inner), outer, priority="sheddable")
    run(lambda: answer(app, http()))
    assert inner.stats().admitted[Priority.SHEDDABLE] == 1
