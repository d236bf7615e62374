"""GateMiddleware over plain ASGI applications."""

import asyncio

import pytest
import trio
from driver import Connection, answer, assert_refused, http, ok, run, status_of
from tidegate import ConfigError, Gate, Outcome, Priority, Shed
from tidegate.asgi import GateMiddleware, Receive, Scope, Send, ShedMiddleware


def test_admits_up_to_the_limit_and_answers_503_above() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        app = GateMiddleware(ok, gate)
        assert await status_of(app, http()) == 200
        with gate:
            assert_refused(await answer(app, http()))
        assert await status_of(app, http()) == 200
        assert gate.in_flight == 0

    run(scenario)


def test_refuses_without_reading_the_request() -> None:
    async def scenario() -> None:
        connection = Connection(GateMiddleware(ok, Gate("edge", limit=0)), http())
        assert_refused(await connection.end())  # no body was pushed

    run(scenario)


@pytest.mark.parametrize("path", ["/health", "/healthz", "/livez", "/readyz"])
def test_health_paths_pass_a_full_gate_without_a_permit(path: str) -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=0)
        assert await status_of(GateMiddleware(ok, gate), http(path)) == 200
        assert sum(gate.stats().admitted.values()) == 0

    run(scenario)


@pytest.mark.parametrize("path", ["/healthz/", "/healthzz", "/HEALTHZ", "/a/healthz", "/", "//healthz"])
def test_health_paths_are_compared_exactly(path: str) -> None:
    async def scenario() -> None:
        assert await status_of(GateMiddleware(ok, Gate("edge", limit=0)), http(path)) == 503

    run(scenario)


def test_health_paths_are_those_below_the_root_path() -> None:
    """Servers put the prefix that a proxy stripped in front of the path again."""

    async def scenario() -> None:
        app = GateMiddleware(ok, Gate("edge", limit=0), health_paths=["/up"])
        assert await status_of(app, http("/api/up", root_path="/api")) == 200
        assert await status_of(app, http("/up", root_path="/api")) == 200
        assert await status_of(app, http("/apiup", root_path="/api")) == 503
        assert await status_of(app, http("/healthz")) == 503

    run(scenario)


def test_a_shed_on_a_health_path_is_a_503_too() -> None:
    async def scenario() -> None:
        app = GateMiddleware(raising(a_shed), Gate("edge", limit=1))
        assert_refused(await answer(app, http("/healthz")))

    run(scenario)


def test_d30_lifespan_and_unknown_scopes_pass_a_gate_of_zero() -> None:
    async def scenario() -> None:
        seen = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(scope["type"])

        gated = GateMiddleware(app, Gate("edge", limit=0))
        for scope in ({"type": "lifespan"}, {"type": "something.new"}):
            await Connection(gated, scope).end()
            await Connection(ShedMiddleware(app), scope).end()
        assert seen == ["lifespan"] * 2 + ["something.new"] * 2
        with pytest.raises(Shed):  # no answer would be understood; the server says that the start failed
            await Connection(ShedMiddleware(raising(a_shed)), {"type": "lifespan"}).end()

    run(scenario)


def test_priority_for_all_requests() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=4)
        app = GateMiddleware(ok, gate, priority="non-essential")
        assert await status_of(app, http()) == 200
        with gate.admit(weight=3):  # the rest is not for sheddable requests
            assert await status_of(app, http()) == 503
            assert await status_of(GateMiddleware(ok, gate), http()) == 200
        assert gate.stats().admitted[Priority.SHEDDABLE] == 1

    run(scenario)


def test_priority_by_request() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=8)

        def priority(scope: Scope) -> str | None:
            return {"/reports": "sheddable", "/pay": Priority.CRITICAL_PLUS}.get(scope["path"])

        app = GateMiddleware(ok, gate, priority=priority)
        for path in ("/reports", "/pay", "/other"):
            assert await status_of(app, http(path)) == 200
        stats = gate.stats()
        assert stats.admitted[Priority.SHEDDABLE] == 1
        assert stats.admitted[Priority.CRITICAL_PLUS] == 1
        assert stats.fallback_priority == 1

    run(scenario)


def test_a_name_from_a_client_that_is_no_priority_is_the_least_important() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=8)
        assert await status_of(GateMiddleware(ok, gate, priority=lambda scope: "vip!"), http()) == 200
        assert gate.stats().admitted[Priority.SHEDDABLE] == 1

    run(scenario)


def test_the_gates_inside_use_the_priority_of_the_request() -> None:
    async def scenario() -> None:
        inner = Gate("db", limit=20)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            with inner:
                await asyncio.to_thread(inner.admit().__enter__().release)
                await ok(scope, receive, send)

        await status_of(GateMiddleware(app, Gate("edge", limit=20), priority="sheddable"), http())
        assert inner.stats().admitted[Priority.SHEDDABLE] == 2
        await status_of(GateMiddleware(app, Gate("edge", limit=20)), http())
        assert inner.stats().admitted[Priority.CRITICAL] == 2

    run(scenario)


def test_wrong_arguments_are_told_at_once() -> None:
    gate = Gate("edge", limit=1)
    with pytest.raises(ConfigError, match="priority must be one of"):
        GateMiddleware(ok, gate, priority="urgent")
    with pytest.raises(TypeError, match="health_paths must be a collection"):
        GateMiddleware(ok, gate, health_paths="/healthz")
    for path in ("healthz", b"/healthz"):
        with pytest.raises(ConfigError, match="a health path must begin with '/'"):
            GateMiddleware(ok, gate, health_paths=[path])  # type: ignore[list-item]
    for no_gate in (ok, None):
        with pytest.raises(TypeError, match="gate must be a Gate"):
            GateMiddleware(ok, no_gate)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="gate must be a Gate, got 'sockets'"):
        GateMiddleware(ok, gate, websocket_gate="sockets")  # type: ignore[arg-type]
    for status in (503.0, "503", [503]):
        with pytest.raises(ConfigError, match="status must be 503 or 429"):
            GateMiddleware(ok, gate, status=status)  # type: ignore[arg-type]


def test_a_shed_inside_before_the_response_is_a_503() -> None:
    async def scenario() -> None:
        edge = Gate("edge", limit=1)
        assert_refused(await answer(GateMiddleware(raising(a_shed), edge), http()))
        assert_refused(await answer(ShedMiddleware(raising(a_shed)), http()))
        assert edge.stats().released[Outcome.IGNORE] == 1  # it says nothing about what the edge protects

    run(scenario)


def test_a_group_of_sheds_is_a_503_and_a_group_with_anything_else_is_raised() -> None:
    async def scenario() -> None:
        nested = ExceptionGroup("", [ExceptionGroup("", [a_shed()]), a_shed()])
        assert_refused(await answer(ShedMiddleware(raising(lambda: nested)), http()))
        mixed = ExceptionGroup("", [a_shed(), ValueError()])
        with pytest.raises(ExceptionGroup):
            await answer(ShedMiddleware(raising(lambda: mixed)), http())

    run(scenario)


def test_other_errors_are_raised_and_free_the_permit() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        app = GateMiddleware(raising(lambda: ValueError("a bug")), gate)
        for _ in range(3):
            with pytest.raises(ValueError, match="a bug"):
                await answer(app, http())
        assert gate.in_flight == 0

    run(scenario)


def test_a_shed_after_the_response_began_is_raised_and_nothing_more_is_sent() -> None:
    async def scenario() -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise a_shed()

        gate = Gate("edge", limit=1)
        connection = Connection(GateMiddleware(app, gate), http())
        assert (await connection.next())["status"] == 200
        with pytest.raises(Shed):
            await connection.end()
        assert connection._from_app.empty()
        assert gate.in_flight == 0

    run(scenario)


def test_messages_before_the_response_leave_room_for_the_503() -> None:
    """Informational messages (early hints, a template for tests) do not commit the server."""

    async def scenario() -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.early_hint", "links": []})
            raise a_shed()

        hint, *refusal = await answer(ShedMiddleware(app), http())
        assert hint["type"] == "http.response.early_hint"
        assert_refused(refusal)

    run(scenario)


def test_a_cancelled_request_frees_its_permit() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=1)
        inside = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            inside.set()
            await asyncio.Event().wait()

        connection = Connection(GateMiddleware(app, gate), http())
        await inside.wait()
        assert gate.in_flight == 1
        connection.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connection.task
        assert gate.in_flight == 0
        assert gate.stats().released[Outcome.IGNORE] == 1

    run(scenario)


def test_dry_run_lets_all_pass() -> None:
    async def scenario() -> None:
        gate = Gate("edge", limit=0, enforce=False)
        assert await status_of(GateMiddleware(ok, gate), http()) == 200
        assert sum(gate.stats().would_shed.values()) == 1

    run(scenario)


def test_on_trio() -> None:
    async def scenario() -> None:
        sent = []

        async def send(message: object) -> None:
            sent.append(message)

        await GateMiddleware(ok, Gate("edge", limit=0))(http(), trio.sleep_forever, send)
        assert_refused(sent)

    trio.run(scenario)


def a_shed() -> Shed:
    return Shed("db", "limit", "critical", 20, 20, 0.4)


def raising(error):
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise error()

    return app
