"""Every way out of a request under ASGI, for HTTP and websockets: nothing in flight, and full capacity."""

import asyncio
from collections.abc import Callable

import pytest
import trio
from driver import DENIAL, Connection, answer, http, ok, run, websocket
from gatekit import assert_at_rest, released
from tidegate import Gate, Shed
from tidegate._held import check_out
from tidegate.asgi import App, GateMiddleware, Receive, Scope, Send


class Stop(BaseException):
    pass


@pytest.fixture
def gate() -> Gate:
    return Gate("edge", limit=2)


def cells(fault: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "scope",
        [
            pytest.param(http, marks=pytest.mark.leak("asgi", fault), id="http"),
            pytest.param(websocket, marks=pytest.mark.leak("asgi-websocket", fault), id="websocket"),
        ],
    )


def raising(error: BaseException) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise error

    return app


def raised_by(app: App, scope: Scope, error: type[BaseException]) -> None:
    async def scenario() -> None:
        with pytest.raises(error):
            await answer(app, scope)

    run(scenario)


@cells("exception")
def test_an_exception(gate: Gate, scope: Callable[[], Scope]) -> None:
    raised_by(GateMiddleware(raising(ValueError()), gate), scope(), ValueError)
    assert released(gate.stats()) == {"success": 1}
    assert_at_rest(gate)


@cells("base-exception")
def test_a_base_exception(gate: Gate, scope: Callable[[], Scope]) -> None:
    raised_by(GateMiddleware(raising(Stop()), gate), scope(), Stop)
    assert_at_rest(gate)


@cells("timeout")
def test_a_timeout_inside(gate: Gate, scope: Callable[[], Scope]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    raised_by(GateMiddleware(app, gate), scope(), TimeoutError)
    assert released(gate.stats()) == {"overload": 1}
    assert_at_rest(gate)


@cells("timeout")
def test_a_timeout_outside(gate: Gate, scope: Callable[[], Scope]) -> None:
    """The server gives up: to the gate a cancellation."""

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await GateMiddleware(waiting, gate)(scope(), nothing, nothing)

    run(scenario)
    assert released(gate.stats()) == {"ignore": 1}
    assert_at_rest(gate)


@cells("cancel-before")
def test_cancelled_before_it_began(gate: Gate, scope: Callable[[], Scope]) -> None:
    async def scenario() -> None:
        task = asyncio.ensure_future(GateMiddleware(waiting, gate)(scope(), nothing, nothing))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        coroutine = GateMiddleware(waiting, gate)(scope(), nothing, nothing)
        coroutine.close()

    run(scenario)
    assert released(gate.stats()) == {}
    assert_at_rest(gate)


@cells("cancel-after")
def test_cancelled_at_each_of_its_awaits(gate: Gate, scope: Callable[[], Scope]) -> None:
    """Admission never waits, so a cancellation comes before it or after it, in the body."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def scenario() -> None:
        for turns in range(4):
            task = asyncio.ensure_future(GateMiddleware(app, gate)(scope(), nothing, nothing))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert gate.in_flight == 0

    run(scenario)
    assert released(gate.stats()) == {"ignore": 3}
    assert_at_rest(gate)


@cells("cancel-after")
def test_cancelled_on_trio(gate: Gate, scope: Callable[[], Scope]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await trio.sleep_forever()

    async def scenario() -> None:
        with trio.move_on_after(0):
            await GateMiddleware(app, gate)(scope(), nothing, nothing)
        assert gate.in_flight == 0

    trio.run(scenario)
    assert_at_rest(gate)


@cells("client-gone")
def test_a_client_that_leaves(gate: Gate, scope: Callable[[], Scope]) -> None:
    """The application learns of it from receive(), or from a send() that raises."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while not (await receive())["type"].endswith(".disconnect"):
            pass

    async def sending(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": f"{scope['type']}.anything"})

    async def gone(message: object) -> None:
        raise OSError("the client is gone")

    async def scenario() -> None:
        connection = Connection(GateMiddleware(app, gate), scope())
        await asyncio.sleep(0)
        assert gate.in_flight == 1
        connection.push("http.disconnect")
        await connection.end()
        with pytest.raises(OSError, match="gone"):
            await GateMiddleware(sending, gate)(scope(), nothing, gone)
        with pytest.raises(OSError, match="gone"):  # while it is told that it was shed
            await GateMiddleware(ok, Gate("full", limit=0))(scope(), nothing, gone)

    run(scenario)
    assert_at_rest(gate)


@cells("nested")
def test_what_is_inside_is_counted_once(gate: Gate, scope: Callable[[], Scope]) -> None:
    gate.set_limit(1)

    @gate.guard
    async def guarded() -> int:
        return gate.in_flight

    def hook() -> int:
        hold = check_out(gate)
        try:
            return gate.in_flight
        finally:
            hold.leave()

    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend([hook(), await asyncio.to_thread(hook), await asyncio.create_task(guarded())])

    async def scenario() -> None:
        await GateMiddleware(app, gate)(scope(), nothing, nothing)

    run(scenario)
    assert seen == [1, 1, 1]
    assert sum(gate.stats().admitted.values()) == 1
    assert_at_rest(gate)


@cells("gc")
def test_a_task_that_nobody_finishes(gate: Gate, scope: Callable[[], Scope]) -> None:
    """As when an event loop is closed with requests inside."""
    coroutine = GateMiddleware(waiting, gate)(scope(), nothing, nothing)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        with pytest.raises(RuntimeError, match="no running event loop"):
            coroutine.send(None)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert_at_rest(gate)
    generator = GateMiddleware(suspended, gate)(scope(), nothing, nothing)
    generator.send(None)
    assert gate.in_flight == 1
    del generator
    assert released(gate.stats())["ignore"] == 1
    assert_at_rest(gate)


# --- D12: two gates, one around the other ---------------------------------------------------------


@pytest.mark.parametrize("first_is_outer", [True, False])
@pytest.mark.parametrize("full", ["first", "second"])
def test_d12_where_one_says_no_the_other_gives_back(first_is_outer: bool, full: str) -> None:
    first, second = Gate("first", limit=10), Gate("second", limit=10)
    (first if full == "first" else second).set_limit(0)
    gates = [first, second] if first_is_outer else [second, first]
    app = ok
    for gate in gates:
        app = GateMiddleware(app, gate)

    async def scenario() -> None:
        for _ in range(1_000):
            start, _body = await answer(app, http())
            assert start["status"] == 503

    run(scenario)
    for gate in gates:
        assert_at_rest(gate)


@pytest.mark.parametrize("first_is_outer", [True, False])
def test_d12_an_exception_inside_frees_both(first_is_outer: bool) -> None:
    gates = [Gate("first", limit=1), Gate("second", limit=1)]
    app = raising(ValueError())
    for gate in gates if first_is_outer else reversed(gates):
        app = GateMiddleware(app, gate)
    for _ in range(100):
        raised_by(app, http(), ValueError)
    for gate in gates:
        assert_at_rest(gate)


def test_d12_each_gate_is_joined_by_its_own_hook() -> None:
    outer, inner = Gate("outer", limit=1), Gate("inner", limit=1)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for gate in (outer, inner):
            check_out(gate).leave()
        with pytest.raises(Shed):
            inner.admit().__enter__()
        await ok(scope, receive, send)

    async def scenario() -> None:
        start, _ = await answer(GateMiddleware(GateMiddleware(app, inner), outer), http())
        assert start["status"] == 200

    run(scenario)
    for gate in (outer, inner):
        assert sum(gate.stats().admitted.values()) == 1
        assert_at_rest(gate)


def test_a_denied_websocket_leaves_nothing() -> None:
    gate = Gate("edge", limit=0)

    async def scenario() -> None:
        for extensions in ({}, DENIAL):
            await Connection(GateMiddleware(ok, gate), websocket(extensions=extensions)).end()

    run(scenario)
    assert_at_rest(gate)


async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(3600)


async def suspended(scope: Scope, receive: Receive, send: Send) -> None:
    class Once:
        def __await__(self):
            yield

    await Once()


async def nothing(_: object = None) -> dict:
    return {"type": "nothing"}
