"""Health checks pass a full gate within their own reserve; `release="start"`; the status."""

import asyncio
from typing import Any

import pytest
from driver import Connection, answer, http, ok, run, status_of, websocket
from gatekit import assert_at_rest
from tidegate import ConfigError, Gate, Priority
from tidegate._held import check_out
from tidegate.asgi import GateMiddleware, Receive, Scope, Send, ShedMiddleware


class Slow:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.inside += 1
        await self.go.wait()
        await ok(scope, receive, send)


def test_a_flood_of_health_checks_is_a_flood() -> None:
    """Above their reserve they ask the gate, as what is most important, and are shed with the rest."""

    async def scenario() -> None:
        gate, slow = Gate("edge", limit=2), Slow()
        app = GateMiddleware(slow, gate, health_limit=3)
        checks = [Connection(app, http("/healthz")) for _ in range(7)]
        while slow.inside < 5:
            await asyncio.sleep(0)
        assert gate.in_flight == 2
        assert gate.stats().admitted[Priority.CRITICAL_PLUS] == 2
        statuses = [(await check.next())["status"] for check in checks[5:]]
        assert statuses == [503, 503]
        slow.go.set()
        for check in checks:
            await check.end()
        assert slow.inside == 5
        assert_at_rest(gate)
        assert await status_of(app, http("/healthz")) == 200

    run(scenario)


def test_health_checks_do_not_use_up_the_gate() -> None:
    async def scenario() -> None:
        gate, slow = Gate("edge", limit=2), Slow()
        app = GateMiddleware(slow, gate)
        checks = [Connection(app, http("/healthz")) for _ in range(4)]
        work = [Connection(app, http()) for _ in range(2)]
        while slow.inside < 6:
            await asyncio.sleep(0)
        slow.go.set()
        for connection in checks + work:
            assert (await connection.end())[0]["status"] == 200
        assert sum(gate.stats().admitted.values()) == 2

    run(scenario)


def test_without_a_reserve_health_checks_ask_the_gate() -> None:
    async def scenario() -> None:
        app = GateMiddleware(ok, Gate("edge", limit=0), health_limit=0)
        assert await status_of(app, http("/healthz")) == 503

    run(scenario)


def test_the_gate_of_health_checks_has_a_name_that_fits() -> None:
    GateMiddleware(ok, Gate("ä" * 127, limit=1))


# --- release="start" ------------------------------------------------------------------------------


def test_release_at_the_start_of_the_response() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        seen: list[int] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(gate.in_flight)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            seen.append(gate.in_flight)
            hold = check_out(gate)  # what needs the database now takes a place of its own
            seen.append(gate.in_flight)
            hold.leave()
            await send({"type": "http.response.body", "body": b""})

        await answer(GateMiddleware(app, gate, release="start"), http())
        assert seen == [1, 0, 1]
        assert sum(gate.stats().admitted.values()) == 2
        assert_at_rest(gate)

    run(scenario)


def test_a_connection_that_is_out_at_the_start_stays_counted() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        seen: list[int] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            hold = check_out(gate)
            await ok(scope, receive, send)
            seen.append(gate.in_flight)
            hold.leave()
            seen.append(gate.in_flight)

        await answer(GateMiddleware(app, gate, release="start"), http())
        assert seen == [1, 0]
        assert_at_rest(gate)

    run(scenario)


def test_a_websocket_is_held_to_its_end_all_the_same() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        seen: list[int] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "websocket.accept"})
            seen.append(gate.in_flight)

        await Connection(GateMiddleware(app, gate, release="start"), websocket()).end()
        assert seen == [1]
        assert_at_rest(gate)

    run(scenario)


# --- the answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
def test_the_status_is_that_of_every_shed(status: int) -> None:
    async def scenario() -> None:
        full = Gate("edge", limit=0)

        async def inside(scope: Scope, receive: Receive, send: Send) -> None:
            with full:
                pass

        for app in (
            GateMiddleware(ok, full, status=status),
            GateMiddleware(inside, Gate("wide", limit=9), status=status),
            ShedMiddleware(inside, status=status),
        ):
            assert await status_of(app, http()) == status

    run(scenario)


def test_a_refused_head_has_no_body_and_the_length_of_a_get() -> None:
    async def scenario() -> None:
        start, body = await answer(GateMiddleware(ok, Gate("edge", limit=0)), http(method="HEAD"))
        assert body["body"] == b""
        assert int(dict(start["headers"])[b"content-length"]) > 0

    run(scenario)


@pytest.mark.parametrize("options", [{"release": "end"}, {"status": 500}, {"health_limit": -1}])
def test_wrong_options_are_told_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=str(next(iter(options.values())))):
        GateMiddleware(ok, Gate("edge", limit=1), **options)
    if "status" in options:
        with pytest.raises(ConfigError, match="500"):
            ShedMiddleware(ok, **options)
