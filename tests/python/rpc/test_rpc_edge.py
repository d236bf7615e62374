"""Health checks, priorities, and options of the gRPC edge."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
from gatekit import PATIENCE, assert_at_rest, output_of, until
from rpckit import HEALTH, SERVICE, Kind, Service, assert_shed, both, serving
from tidegate import Classifier, ConfigError, Gate, Priority
from tidegate.grpc import AioGateInterceptor, GateInterceptor, TrustedHeader, _address


@pytest.fixture
def gate() -> Gate:
    return Gate("edge", limit=1)


# --- health ----------------------------------------------------------------------------------------


class Health:
    """A health service of plain functions, whose checks can be held up."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.running = 0

    def check(self, _message: bytes, _context: Any) -> bytes:
        self.running += 1
        assert self.go.wait(PATIENCE)
        return b"serving"

    def watch(self, _message: bytes, context: Any) -> Iterator[bytes]:
        yield b"serving"
        gone = threading.Event()
        context.add_callback(gone.set)
        gone.wait(PATIENCE)

    async def watch_async(self, _message: bytes, _context: Any) -> AsyncIterator[bytes]:
        yield b"serving"
        await asyncio.Event().wait()

    def handlers(self, kind: Kind) -> list[grpc.GenericRpcHandler]:
        watch: Any = self.watch if kind == "grpc" else self.watch_async
        methods = {
            "Check": grpc.unary_unary_rpc_method_handler(self.check),
            "Watch": grpc.unary_stream_rpc_method_handler(watch),
        }
        return [grpc.method_handlers_generic_handler(HEALTH, methods)]


CHECK, WATCH = f"/{HEALTH}/Check", f"/{HEALTH}/Watch"


@both
def test_a_full_service_is_not_a_dead_one(kind: Kind, gate: Gate) -> None:
    health = Health()
    health.go.set()
    with gate, serving(kind, gate, Service(), handlers=health.handlers(kind)) as client:
        assert_shed(client.start().error())
        assert client.start(method=CHECK).answers() == [b"serving"]
    assert sum(gate.stats().admitted.values()) == 1
    assert_at_rest(gate)


def test_health_is_answered_while_all_threads_are_busy_and_calls_wait() -> None:
    gate, health, service = Gate("edge", limit=3), Health(), Service()
    health.go.set()
    with serving("grpc", gate, service, handlers=health.handlers("grpc"), threads=1) as client:
        calls = [client.start() for _ in range(3)]
        until(lambda: gate.in_flight == 3)
        assert client.start(method=CHECK).answers() == [b"serving"]
        assert_shed(client.start().error())
        service.let_on(3)
        assert [call.answers() for call in calls] == [[b"done"]] * 3
        until(lambda: gate.in_flight == 0)
    assert_at_rest(gate)


@both
def test_a_flood_of_health_checks_is_shed_like_any_other(kind: Kind) -> None:
    gate, health = Gate("edge", limit=1), Health()
    with serving(kind, gate, Service(), handlers=health.handlers(kind), health_limit=2) as client:
        checks = [client.start(method=CHECK) for _ in range(3)]  # two in the reserve, and one in the gate
        until(lambda: gate.in_flight == 1)
        assert_shed(client.start(method=CHECK).error())
        assert gate.stats().admitted[Priority.CRITICAL_PLUS] == 1
        health.go.set()
        assert [check.answers() for check in checks] == [[b"serving"]] * 3
        until(lambda: gate.in_flight == 0)
    assert_at_rest(gate)


@both
def test_a_watch_holds_nothing(kind: Kind, gate: Gate) -> None:
    health = Health()
    health.go.set()
    with serving(kind, gate, Service(), handlers=health.handlers(kind), threads=8, health_limit=1) as client:
        watches = [client.start("unary_stream", WATCH) for _ in range(5)]
        assert [watch.next() for watch in watches] == [b"serving"] * 5
        assert gate.in_flight == 0
        assert client.start(method=CHECK).answers() == [b"serving"]
        for watch in watches:
            watch.cancel()
    assert_at_rest(gate)


# --- priority --------------------------------------------------------------------------------------


def priorities_of(kind: Kind, source: Any, *metadata: tuple[tuple[str, str], ...]) -> list[Priority]:
    """The priorities that calls with such metadata were admitted with."""
    gate, service, found = Gate("edge", limit=4), Service(), []
    with serving(kind, gate, service, priority=source) as client:
        for each in metadata:
            before = gate.stats().admitted
            service.let_on()
            client.start(metadata=each).answers()
            after = gate.stats().admitted
            found += [priority for priority in Priority if after[priority] > before[priority]]
    return found


@both
def test_priority_by_method(kind: Kind) -> None:
    assert priorities_of(kind, {f"/{SERVICE}/*": "sheddable_plus"}, ()) == [Priority.SHEDDABLE_PLUS]
    assert priorities_of(kind, {"/shop.Other/*": "sheddable"}, ()) == [Priority.CRITICAL]


@both
def test_priority_by_metadata(kind: Kind) -> None:
    found = priorities_of(
        kind,
        TrustedHeader("X-Priority", "*"),
        (("x-priority", "critical_plus"),),
        (("x-priority", "emperor"),),
        (("x-priority", "critical_plus"), ("x-priority", "critical_plus")),
        (),
    )
    assert found == [Priority.CRITICAL_PLUS, Priority.SHEDDABLE, Priority.SHEDDABLE, Priority.CRITICAL]


@both
def test_priority_by_rules(kind: Kind) -> None:
    rules = Classifier(
        [
            {"match": {"path": f"/{SERVICE}/*", "header.X-Plan": "free"}, "priority": "sheddable"},
            {"match": {"method": "GET"}, "priority": "critical_plus"},  # a call is a POST
        ]
    )
    found = priorities_of(kind, rules, (("x-plan", "free"),), (("x-plan", "paid"),), ())
    assert found == [Priority.SHEDDABLE, Priority.CRITICAL, Priority.CRITICAL]


def test_only_an_asyncio_server_has_rules_for_clients(gate: Gate) -> None:
    rules = Classifier([{"match": {"client": "127.*"}, "priority": "sheddable"}])
    assert priorities_of("grpc-aio", rules, ()) == [Priority.SHEDDABLE]
    with pytest.raises(ConfigError, match="rules may not name client"):
        GateInterceptor(gate, priority=["critical", rules])


@pytest.mark.parametrize(
    ("proxies", "priority"),
    [("127.0.0.0/8", "critical_plus"), ("10.0.0.0/8", "critical"), ("unix", "critical")],
)
def test_an_asyncio_server_believes_its_proxies_only(proxies: str, priority: str) -> None:
    source = TrustedHeader("x-priority", proxies)
    assert priorities_of("grpc-aio", source, (("x-priority", "critical_plus"),)) == [Priority(priority)]


@both
def test_priority_by_a_function_of_the_call_details(kind: Kind) -> None:
    def of_a_batch(details: grpc.HandlerCallDetails) -> str | None:
        return "sheddable" if dict(details.invocation_metadata).get("batch") == "yes" else None

    found = priorities_of(kind, [of_a_batch, "sheddable_plus"], (("batch", "yes"),), ())
    assert found == [Priority.SHEDDABLE, Priority.SHEDDABLE_PLUS]


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:127.0.0.1:5000", "127.0.0.1"),
        ("ipv6:%5B::1%5D:5000", "::1"),
        ("ipv6:[fe80::1]:5000", "fe80::1"),
        ("unix:/run/shop.sock", None),
        ("unix:", None),
        ("vsock:3:5000", "untold"),
        ("", "untold"),
    ],
)
def test_whose_address_a_peer_has(peer: str, address: str | None) -> None:
    assert _address(peer) == address


# --- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("interceptor", [GateInterceptor, AioGateInterceptor])
def test_bad_options_are_refused(interceptor: Any, gate: Gate) -> None:
    with pytest.raises(ConfigError, match="emperor"):
        interceptor(gate, priority="emperor")
    with pytest.raises(ConfigError, match="route"):
        interceptor(gate, priority={"shop.Orders": "critical"})
    with pytest.raises(TypeError, match="collection"):
        interceptor(gate, health_methods=CHECK)


@pytest.mark.parametrize("proxies", ["10.0.0.0/8", "unix"])
def test_a_synchronous_server_cannot_tell_its_proxies(proxies: str, gate: Gate) -> None:
    with pytest.raises(ConfigError, match="proxies"):
        GateInterceptor(gate, priority=["critical", TrustedHeader("x-priority", proxies)])


def test_the_package_does_not_import_it() -> None:
    assert output_of("import sys, tidegate; print('grpc' in sys.modules)") == "False\n"
