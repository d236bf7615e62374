"""A call holds its permit until its handler has ended, and what does not fit is told when to come back."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest
from gatekit import assert_at_rest, released, shed, until
from rpckit import CALLS, SERVICE, Kind, Service, assert_shed, both, cells, serving
from tidegate import Gate, Priority, Shed
from tidegate._held import check_out
from tidegate.grpc import AioGateInterceptor, GateInterceptor, pushback_ms


@pytest.fixture
def gate() -> Gate:
    return Gate("edge", limit=1)


@both
@pytest.mark.parametrize("call", CALLS)
def test_every_kind_of_call_holds_a_permit_and_is_shed(kind: Kind, call: str, gate: Gate) -> None:
    service = Service()
    with serving(kind, gate, service) as client:
        first = client.start(call)
        until(lambda: service.running == 1)
        assert gate.in_flight == 1
        for other in CALLS:
            assert_shed(client.start(other).error())
        service.let_on(Service.messages)
        assert first.answers() == ([b"message"] * 3 if call.endswith("stream") else [b"done"])
        until(lambda: gate.in_flight == 0)
    assert shed(gate.stats()) == 4
    assert released(gate.stats()) == {"success": 1}
    assert_at_rest(gate)


@both
@pytest.mark.parametrize("call", ["unary_stream", "stream_stream"])
def test_a_streamed_answer_keeps_its_permit_until_its_last_message(kind: Kind, call: str, gate: Gate) -> None:
    service = Service()
    with serving(kind, gate, service) as client:
        stream = client.start(call)
        for _ in range(Service.messages):
            until(lambda: gate.in_flight == 1)
            assert_shed(client.start().error())
            service.let_on()
            assert stream.next() == b"message"
        assert stream.answers() == []
        until(lambda: gate.in_flight == 0)
    assert_at_rest(gate)


@both
def test_a_method_that_is_not_there_takes_no_place(kind: Kind, gate: Gate) -> None:
    with serving(kind, gate, Service()) as client:
        error = client.start(method=f"/{SERVICE}/missing").error()
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
    assert sum(gate.stats().admitted.values()) == 0


# --- what a shed says ------------------------------------------------------------------------------


def refusal(retry_after: float | None, reason: str = "limit") -> Shed:
    return Shed("edge", reason, "critical", 1, 1, retry_after)


@pytest.mark.parametrize(
    ("retry_after", "shortest"),
    [(None, 1_000), (0.0, 1), (-1.0, 1), (0.0301, 31), (0.5, 500), (57.2, 57_200), (1e9, 86_400_000)],
)
def test_the_pushback_is_whole_milliseconds_jittered_upwards_only(
    retry_after: float | None, shortest: int
) -> None:
    values = {int(pushback_ms(refusal(retry_after))) for _ in range(200)}
    assert min(values) >= shortest
    assert max(values) <= shortest + max(1, shortest // 2)
    assert len(values) >= 2


def test_what_never_fits_is_not_to_be_retried_and_what_is_closed_is() -> None:
    assert pushback_ms(refusal(float("inf"))) == "-1"
    assert 1_000 <= int(pushback_ms(refusal(float("inf"), reason="closed"))) <= 1_500


RETRY_POLICY = {
    "maxAttempts": 3,
    "initialBackoff": "30s",
    "maxBackoff": "30s",
    "backoffMultiplier": 1,
    "retryableStatusCodes": ["RESOURCE_EXHAUSTED"],
}
RETRIES = json.dumps({"methodConfig": [{"name": [{"service": SERVICE}], "retryPolicy": RETRY_POLICY}]})


@both
def test_a_client_comes_back_when_it_is_told_to(kind: Kind, gate: Gate) -> None:
    service = Service()
    with serving(kind, gate, service, channel_options=[("grpc.service_config", RETRIES)]) as client:
        held = gate.try_admit()
        call = client.start()
        until(lambda: shed(gate.stats()) == 1)
        assert held is not None
        held.release()
        service.let_on()
        assert call.answers() == [b"done"]  # in 1 to 1.5 s, and not after its own backoff of 30 s


@both
def test_a_client_does_not_come_back_when_nothing_can_fit(kind: Kind, gate: Gate) -> None:
    gate.set_limit(0)
    with serving(kind, gate, Service(), channel_options=[("grpc.service_config", RETRIES)]) as client:
        assert assert_shed(client.start().error()) == -1
    assert shed(gate.stats()) == 1


# --- what happens inside ---------------------------------------------------------------------------


@cells("nested")
@pytest.mark.parametrize("call", CALLS)
def test_a_pool_hook_inside_joins_the_calls_permit(kind: Kind, call: str, gate: Gate) -> None:
    def check_out_and_return(_context: Any) -> None:
        hold = check_out(gate)
        assert gate.in_flight == 1
        hold.leave()

    def in_the_middle(_number: int) -> None:
        check_out_and_return(None)

    service = Service(check_out_and_return, in_the_middle)
    with serving(kind, gate, service) as client:
        for _ in range(3):  # in the same thread, too
            service.let_on(Service.messages)
            client.start(call).answers()
            until(lambda: gate.in_flight == 0)
    assert shed(gate.stats()) == 0
    assert_at_rest(gate)


@cells("nested")
def test_a_connection_that_outlives_its_call_keeps_the_permit(kind: Kind, gate: Gate) -> None:
    kept = []
    service = Service(lambda _context: kept.append(check_out(gate)))
    with serving(kind, gate, service) as client:
        service.let_on()
        client.start().answers()
        until(lambda: service.running == 0)
        assert gate.in_flight == 1
        kept.pop().leave()
    assert_at_rest(gate)


@both
@pytest.mark.parametrize("call", CALLS)
def test_the_shed_of_a_pool_inside_is_answered_likewise(kind: Kind, call: str) -> None:
    gate, pool = Gate("edge", limit=1), Gate("pool", limit=1)
    with pool, serving(kind, gate, Service(lambda _context: check_out(pool))) as client:
        assert_shed(client.start(call).error(), "pool")
        until(lambda: gate.in_flight == 0)
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)
    assert_at_rest(pool)


@both
def test_a_shed_in_the_middle_of_a_stream_is_answered_too(kind: Kind) -> None:
    gate, pool = Gate("edge", limit=1), Gate("pool", limit=1)

    def second_message_needs_the_pool(number: int) -> None:
        if number == 2:
            check_out(pool)

    service = Service(on_message=second_message_needs_the_pool)
    with pool, serving(kind, gate, service) as client:
        stream = client.start("unary_stream")
        service.let_on(2)
        assert stream.next() == b"message"
        assert_shed(stream.error(), "pool")
        until(lambda: gate.in_flight == 0)
    assert_at_rest(gate)


@both
def test_the_calls_priority_reaches_gates_inside(kind: Kind, gate: Gate) -> None:
    pool = Gate("pool", limit=4)
    service = Service(lambda _context: check_out(pool).leave())
    with serving(kind, gate, service, priority={f"/{SERVICE}/unary_*": "sheddable"}) as client:
        service.let_on()
        client.start().answers()
        until(lambda: gate.in_flight == 0)
    assert gate.stats().admitted[Priority.SHEDDABLE] == 1
    assert pool.stats().admitted[Priority.SHEDDABLE] == 1


# --- two gates (D12) -------------------------------------------------------------------------------


def interceptor(kind: Kind, gate: Gate) -> Any:
    return GateInterceptor(gate) if kind == "grpc" else AioGateInterceptor(gate)


@both
@pytest.mark.parametrize("full", ["outer", "inner"])
@pytest.mark.parametrize("call", ["unary_unary", "unary_stream"])
def test_of_two_interceptors_the_one_that_is_full_sheds_and_the_other_loses_nothing(
    kind: Kind, full: str, call: str
) -> None:
    gates = {name: Gate(name, limit=1) for name in ("outer", "inner")}
    chain = [interceptor(kind, gates["outer"]), interceptor(kind, gates["inner"])]
    with gates[full], serving(kind, None, Service(), interceptors=chain) as client:
        for _ in range(20):
            assert_shed(client.start(call).error(), full)
        until(lambda: sum(each.in_flight for each in gates.values()) == 1)
    other = next(gate for name, gate in gates.items() if name != full)
    assert set(released(other.stats())) <= {"ignore"}
    for each in gates.values():
        assert_at_rest(each)


@both
def test_both_gates_are_free_after_an_exception(kind: Kind) -> None:
    gates = [Gate("outer", limit=1), Gate("inner", limit=1)]

    def fail(_context: Any) -> None:
        raise ValueError("a bug")

    with serving(
        kind, None, Service(fail), interceptors=[interceptor(kind, each) for each in gates]
    ) as client:
        for _ in range(20):
            assert client.start().error().code() is grpc.StatusCode.UNKNOWN
            until(lambda: all(each.in_flight == 0 for each in gates))
    for each in gates:
        assert released(each.stats()) == {"success": 20}
        assert_at_rest(each)
