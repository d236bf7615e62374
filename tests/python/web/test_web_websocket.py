"""D30: a websocket holds one permit from connect to disconnect, or is refused before it is accepted."""

import asyncio

import pytest
from driver import DENIAL, Connection, assert_refused, http, ok, run, status_of, websocket
from tidegate import Gate, Shed
from tidegate.asgi import GateMiddleware, Receive, Scope, Send, ShedMiddleware


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers HTTP; accepts websockets and says back what they say."""
    if scope["type"] == "http":
        await ok(scope, receive, send)
        return
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] != "websocket.disconnect":
        await send({"type": "websocket.send", "text": message["text"]})


async def connected(app) -> Connection:
    connection = Connection(app, websocket())
    connection.push("websocket.connect")
    assert (await connection.next())["type"] == "websocket.accept"
    return connection


@pytest.mark.parametrize("code", [1000, 1006])  # closed properly, vanished
def test_holds_one_permit_from_connect_to_disconnect(code: int) -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        app = GateMiddleware(echo, gate)
        connection = await connected(app)
        for text in ("one", "two"):
            connection.push("websocket.receive", text=text)
            assert (await connection.next())["text"] == text
            assert gate.in_flight == 1
            assert await status_of(app, http()) == 503
        connection.push("websocket.disconnect", code=code)
        await connection.end()
        assert gate.in_flight == 0

    run(scenario)


def test_over_the_limit_the_handshake_is_answered_with_a_503() -> None:
    async def scenario() -> None:
        refused = Connection(GateMiddleware(echo, Gate("edge", limit=0)), websocket(extensions=DENIAL))
        refused.push("websocket.connect")
        assert_refused(await refused.end(), "websocket.http.response")

    run(scenario)


@pytest.mark.parametrize("extensions", [{}, None])
def test_without_the_extension_it_is_closed_with_try_again_later(extensions: dict | None) -> None:
    async def scenario() -> None:
        scope = {**websocket(), "extensions": extensions}
        refused = Connection(GateMiddleware(echo, Gate("edge", limit=0)), scope)
        refused.push("websocket.connect")
        (close,) = await refused.end()
        assert (close["type"], close["code"]) == ("websocket.close", 1013)
        assert close["reason"].startswith("try again in ")
        assert len(close["reason"].encode()) <= 123  # what a close frame holds

    run(scenario)


def test_a_scope_without_extensions_is_closed_too() -> None:
    async def scenario() -> None:
        scope = websocket()
        del scope["extensions"]
        (close,) = await Connection(GateMiddleware(echo, Gate("edge", limit=0)), scope).end()
        assert close["code"] == 1013

    run(scenario)


def test_a_websocket_on_a_health_path_is_no_health_check() -> None:
    async def scenario() -> None:
        app = GateMiddleware(echo, Gate("edge", limit=0))
        (close,) = await Connection(app, websocket("/healthz")).end()
        assert close["code"] == 1013

    run(scenario)


def test_ten_websockets_on_their_own_gate_leave_http_its_full_limit() -> None:
    async def scenario() -> None:
        gate, sockets = Gate("edge", limit=2), Gate("sockets", limit=10)
        app = GateMiddleware(echo, gate, websocket_gate=sockets)
        open_ = [await connected(app) for _ in range(10)]
        assert sockets.in_flight == 10
        (close,) = await Connection(app, websocket()).end()
        assert close["code"] == 1013
        with gate:
            assert await status_of(app, http()) == 200
        for connection in open_:
            connection.push("websocket.disconnect", code=1000)
            await connection.end()
        assert (gate.in_flight, sockets.in_flight) == (0, 0)

    run(scenario)


@pytest.mark.parametrize(
    "middleware", [ShedMiddleware, lambda app: GateMiddleware(app, Gate("edge", limit=1))]
)
def test_a_shed_inside(middleware) -> None:
    """Before accept as a refusal; after it as a close, which the client can read; after that not at all."""

    async def scenario() -> None:
        def app_that_sheds_after(*messages: str):
            async def app(scope: Scope, receive: Receive, send: Send) -> None:
                for kind in messages:
                    await send({"type": kind})
                raise Shed("db", "limit", "critical", 20, 20, 0.4)

            return middleware(app)

        before = Connection(app_that_sheds_after(), websocket(extensions=DENIAL))
        assert_refused(await before.end(), "websocket.http.response")

        (close,) = await Connection(app_that_sheds_after(), websocket()).end()
        assert close["code"] == 1013

        accepted = app_that_sheds_after("websocket.accept", "websocket.send")
        *_, close = await Connection(accepted, websocket(extensions=DENIAL)).end()
        assert (close["type"], close["code"]) == ("websocket.close", 1013)

        for last in ("websocket.close", "websocket.http.response.start"):
            with pytest.raises(Shed):
                await Connection(app_that_sheds_after(last), websocket(extensions=DENIAL)).end()

    run(scenario)


def test_a_shed_after_the_client_has_gone_is_raised_and_nothing_is_sent() -> None:
    async def shed_at_the_end(scope: Scope, receive: Receive, send: Send) -> None:
        await echo(scope, receive, send)
        raise Shed("db", "limit", "critical", 20, 20, 0.4)

    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        connection = await connected(GateMiddleware(shed_at_the_end, gate))
        connection.push("websocket.disconnect", code=1000)
        with pytest.raises(Shed):
            await connection.end()
        assert connection.pending() == []
        assert gate.in_flight == 0

    run(scenario)


def test_a_cancelled_websocket_frees_its_permit() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        connection = await connected(GateMiddleware(echo, gate))
        connection.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connection.task
        assert gate.in_flight == 0

    run(scenario)
