"""However a call ends, its permit comes back, and its end says what it was."""

from __future__ import annotations

import random
import threading
from typing import Any

import grpc
import pytest
from gatekit import assert_at_rest, released, until
from rpckit import CALLS, Kind, Service, assert_shed, both, cells, serving
from tidegate import Gate
from tidegate._held import check_out


@pytest.fixture
def gate() -> Gate:
    return Gate("edge", limit=2)


class Unexpected(BaseException):
    """What nobody catches."""


# --- the handler fails -----------------------------------------------------------------------------


@cells("exception")
@pytest.mark.parametrize("call", CALLS)
def test_a_handler_that_raises(kind: Kind, call: str, gate: Gate) -> None:
    def fail(_context: Any) -> None:
        raise ValueError("a bug")

    with serving(kind, gate, Service(fail)) as client:
        for _ in range(4):
            assert client.start(call).error().code() is grpc.StatusCode.UNKNOWN
            until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {"success": 4}  # the resource answered
    assert_at_rest(gate)


@cells("exception")
@pytest.mark.parametrize("call", ["unary_stream", "stream_stream"])
def test_a_stream_that_raises_in_the_middle(kind: Kind, call: str, gate: Gate) -> None:
    def fail(number: int) -> None:
        if number == 3:
            raise TimeoutError("the database")

    service = Service(on_message=fail)
    with serving(kind, gate, service) as client:
        stream = client.start(call)
        service.let_on(3)
        assert [stream.next(), stream.next()] == [b"message"] * 2
        assert stream.error().code() is grpc.StatusCode.UNKNOWN
        until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {"overload": 1}
    assert_at_rest(gate)


@cells("base-exception")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_handler_that_raises_what_nobody_catches(kind: Kind, call: str, gate: Gate) -> None:
    def fail(_context: Any) -> None:
        raise Unexpected

    with serving(kind, gate, Service(fail)) as client:
        running = [client.start(call) for _ in range(2)]
        until(lambda: sum(gate.stats().admitted.values()) == 2 and gate.in_flight == 0)
        for each in running:  # such a call is never answered
            each.cancel()
    assert_at_rest(gate)


@cells("exception")
@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (grpc.StatusCode.NOT_FOUND, "success"),
        (grpc.StatusCode.UNAVAILABLE, "success"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "overload"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "overload"),
        (grpc.StatusCode.CANCELLED, "ignore"),
    ],
)
@pytest.mark.parametrize("call", ["unary_unary", "unary_stream"])
def test_an_abort_tells_the_outcome_by_its_status(
    kind: Kind, call: str, code: grpc.StatusCode, outcome: str, gate: Gate
) -> None:
    service = Service(lambda context: context.abort(code, "no"))
    with serving(kind, gate, service) as client:
        assert client.start(call).error().code() is code
        until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {outcome: 1}
    assert_at_rest(gate)


@both
def test_a_status_that_is_set_tells_the_outcome_too(kind: Kind, gate: Gate) -> None:
    service = Service(lambda context: context.set_code(grpc.StatusCode.DEADLINE_EXCEEDED))
    with serving(kind, gate, service) as client:
        service.let_on()
        client.start().error()
        until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {"overload": 1}


@cells("timeout")
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_outlives_its_deadline_was_too_much(kind: Kind, call: str, gate: Gate) -> None:
    service = Service()
    with serving(kind, gate, service) as client:
        assert client.start(call, timeout=0.1).error().code() is grpc.StatusCode.DEADLINE_EXCEEDED
        service.let_on(Service.messages)  # a thread cannot be interrupted: it notices when it comes to itself
        until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {"overload": 1}
    assert_at_rest(gate)


# --- the client leaves -----------------------------------------------------------------------------


@cells("client-gone")
@pytest.mark.parametrize("call", ["unary_stream", "stream_stream"])
def test_a_client_that_leaves_after_a_message(kind: Kind, call: str, gate: Gate) -> None:
    contexts: list[Any] = []
    service = Service(contexts.append)
    with serving(kind, gate, service) as client:
        stream = client.start(call)
        service.let_on()
        stream.next()
        stream.cancel()
        if kind == "grpc":
            until(lambda: not contexts[0].is_active())
            service.let_on()  # the handler may still wait in its thread
        until(lambda: gate.in_flight == 0)
        until(lambda: service.running == 0)
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


@cells("client-gone", ("grpc-aio",))
@pytest.mark.parametrize("call", CALLS)
def test_a_client_that_leaves_while_the_handler_waits(kind: Kind, call: str, gate: Gate) -> None:
    service = Service()
    with serving(kind, gate, service) as client:
        running = client.start(call)
        until(lambda: service.running == 1)
        running.cancel()
        until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


def storm(kind: Kind, gate: Gate, service: Service, latest: float, rounds: int = 60) -> None:
    """Calls of all kinds whose client leaves at a random moment, not later than so many seconds."""
    chance = random.Random(7)
    with serving(kind, gate, service, threads=2) as client:
        for at in range(rounds):
            call = client.start(CALLS[at % len(CALLS)])
            threading.Event().wait(chance.uniform(0, latest))
            call.cancel()
            service.let_on()
        service.let_on(1_000)  # whoever is still inside
        until(lambda: gate.in_flight == 0 and service.running == 0)
    assert_at_rest(gate)


@cells("cancel-before")
def test_a_storm_of_clients_that_leave_at_once(kind: Kind) -> None:
    storm(kind, Gate("edge", limit=3), Service(), latest=0.0005)


@cells("cancel-in")
def test_a_storm_of_clients_that_leave_while_they_are_admitted(kind: Kind) -> None:
    storm(kind, Gate("edge", limit=3), Service(), latest=0.003)


@cells("cancel-after")
def test_a_storm_of_clients_that_leave_while_a_connection_is_out(kind: Kind) -> None:
    gate = Gate("edge", limit=3)
    storm(kind, gate, Service(lambda _context: check_out(gate).leave()), latest=0.01)


# --- the server ends -------------------------------------------------------------------------------


@cells("server-killed")
@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_stops_without_grace(kind: Kind, call: str, gate: Gate) -> None:
    service = Service()
    with serving(kind, gate, service) as client:
        running = [client.start(call) for _ in range(2)]
        until(lambda: service.running == 2)
        assert_shed(client.start(call).error())
    until(lambda: gate.in_flight == 0)
    for each in running:
        assert each.error().code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    assert_at_rest(gate)


# --- calls that the server drops, or runs its own way ----------------------------------------------


@pytest.mark.leak("grpc", "gc")
def test_a_call_whose_client_leaves_while_it_waits_for_a_thread_is_dropped(gate: Gate) -> None:
    service = Service()
    with serving("grpc", gate, service, threads=1) as client:
        first = client.start()
        until(lambda: service.running == 1)
        second = client.start()
        until(lambda: gate.in_flight == 2)  # the one that waits is counted, too
        second.cancel()
        assert_shed(client.start().error())  # and is told at once, though the only thread is busy
        service.let_on()
        assert first.answers() == [b"done"]
        until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {"success": 1, "ignore": 1}
    assert gate.stats().collected == 0
    assert_at_rest(gate)


@cells("gc", ("grpc",))
def test_a_call_above_the_servers_own_limit_is_dropped(kind: Kind, gate: Gate) -> None:
    service = Service()
    with serving(kind, gate, service, server_options={"maximum_concurrent_rpcs": 1}) as client:
        first = client.start()
        until(lambda: service.running == 1)
        for _ in range(10):
            error = client.start().error()
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "grpc-retry-pushback-ms" not in dict(error.trailing_metadata())
        until(lambda: gate.in_flight == 1)
        service.let_on()
        first.answers()
        until(lambda: gate.in_flight == 0)
    assert gate.stats().collected == 0
    assert_at_rest(gate)


class Swallow(grpc.ServerInterceptor):
    """Throws away what the interceptors inside it made."""

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        continuation(handler_call_details)
        raise ValueError("another interceptor's bug")


@pytest.mark.leak("grpc", "gc")
def test_a_call_that_another_interceptor_drops(gate: Gate) -> None:
    with serving("grpc", gate, Service(), interceptors=[Swallow()]) as client:
        for _ in range(4):
            assert client.start().error().code() is grpc.StatusCode.UNKNOWN
    until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {"ignore": 4}
    assert_at_rest(gate)


def unreadable(_message: bytes) -> None:
    raise ValueError("no message of ours")


@cells("gc")
def test_a_call_whose_message_cannot_be_read_is_dropped(kind: Kind, gate: Gate) -> None:
    broken = grpc.unary_unary_rpc_method_handler(lambda *_: b"", request_deserializer=unreadable)
    handlers = [grpc.method_handlers_generic_handler("shop.Broken", {"broken": broken})]
    with serving(kind, gate, Service(), handlers=handlers) as client:
        for _ in range(4):
            client.start(method="/shop.Broken/broken").error()
    until(lambda: gate.in_flight == 0)
    assert_at_rest(gate)


def test_a_handler_that_sends_later_keeps_its_permit_until_the_call_ends(gate: Gate) -> None:
    senders: list[Any] = []

    def later(_message: bytes, _context: Any, send: Any) -> None:
        senders.append(send)

    later.experimental_non_blocking = True  # type: ignore[attr-defined]
    handlers = [
        grpc.method_handlers_generic_handler(
            "shop.Later", {"watch": grpc.unary_stream_rpc_method_handler(later)}
        )
    ]
    with serving("grpc", gate, Service(), handlers=handlers) as client:
        call = client.start("unary_stream", "/shop.Later/watch")
        until(lambda: len(senders) == 1)
        senders[0](b"message")
        assert call.next() == b"message"
        assert gate.in_flight == 1
        senders[0](None)
        assert call.answers() == []
        until(lambda: gate.in_flight == 0)
        gone = client.start("unary_stream", "/shop.Later/watch")
        until(lambda: len(senders) == 2)
        gone.cancel()
        until(lambda: gate.in_flight == 0)
    assert_at_rest(gate)


@pytest.mark.parametrize("call", ["unary_unary", "unary_stream"])
@pytest.mark.parametrize("fault", [None, "abort", "shed", "nested"])
def test_plain_functions_on_an_asyncio_server(call: str, fault: str | None, gate: Gate) -> None:
    pool = Gate("pool", limit=0)

    def work(context: Any) -> bytes:
        assert gate.in_flight == 1
        if fault == "abort":
            context.abort(grpc.StatusCode.NOT_FOUND, "no")
        elif fault == "shed":
            check_out(pool)
        elif fault == "nested":
            hold = check_out(gate)
            assert gate.in_flight == 1
            hold.leave()
        return b"done"

    def unary(_message: bytes, context: Any) -> bytes:
        return work(context)

    def stream(_message: bytes, context: Any) -> Any:
        yield work(context)

    methods = {
        "unary_unary": grpc.unary_unary_rpc_method_handler(unary),
        "unary_stream": grpc.unary_stream_rpc_method_handler(stream),
    }
    handlers = [grpc.method_handlers_generic_handler("shop.Plain", methods)]
    with serving("grpc-aio", gate, Service(), handlers=handlers) as client:
        running = client.start(call, f"/shop.Plain/{call}")
        if fault == "shed":
            assert assert_shed(running.error(), "pool") == -1
        elif fault == "abort":
            assert running.error().code() is grpc.StatusCode.NOT_FOUND
        else:
            assert running.answers() == [b"done"]
        until(lambda: gate.in_flight == 0)
    assert_at_rest(gate)
