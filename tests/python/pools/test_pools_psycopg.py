"""tidegate.psycopg's threaded pools."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from gatekit import PATIENCE, admitted, assert_at_rest, in_thread, shed, together, until
from poolkit import Stop, assert_counted, collect, interrupted
from psycopg_pool import ConnectionPool, NullConnectionPool, PoolClosed, PoolTimeout, TooManyRequests
from tidegate import Gate, Shed
from tidegate._held import marked
from tidegate._native import Hold
from tidegate.demo.postgres_server import PostgresServer
from tidegate.psycopg import GatedConnectionPool, GatedNullConnectionPool

HOOK = "psycopg-pool"
Pools = type[GatedConnectionPool[Any]]


@pytest.fixture(params=[GatedConnectionPool, GatedNullConnectionPool])
def pools(request: pytest.FixtureRequest) -> Pools:
    """Each pool class."""
    pools: Pools = request.param
    return pools


def small(pools: Pools, gate: Gate, dsn: str, **options: Any) -> GatedConnectionPool[Any]:
    """A pool of one, opened by the test's `with`."""
    size = {"min_size": 0 if pools is GatedNullConnectionPool else 1, "max_size": 1}
    return pools(gate, dsn, **{"open": False, **size, **options})


# --- what it does ----------------------------------------------------------------------------------


def test_a_permit_is_held_from_checkout_to_return(pools: Pools, gate: Gate, dsn: str) -> None:
    with small(pools, gate, dsn) as pool:
        assert isinstance(pool, ConnectionPool)
        assert isinstance(pool, NullConnectionPool) == (pools is GatedNullConnectionPool)
        with pool.connection() as connection:
            assert gate.in_flight == 1
            assert connection.execute("select 1").fetchone() == (1,)
        assert gate.in_flight == 0
        connection = pool.getconn()
        assert gate.in_flight == 1
        pool.putconn(connection)
    assert_counted(gate, success=2)


def test_what_does_not_fit_is_shed_before_the_pool_hears_of_it(pools: Pools, gate: Gate, dsn: str) -> None:
    with small(pools, gate, dsn) as pool:
        permits = [gate.try_admit() for _ in range(gate.limit)]
        for way in (pool.getconn, lambda: pool.connection().__enter__()):
            with pytest.raises(Shed):
                way()
        assert pool.get_stats().get("requests_num", 0) == 0
        for permit in permits:
            permit.release()
    assert shed(gate.stats()) == 2
    assert_at_rest(gate)


def test_a_closed_connection_is_returned_where_the_pool_has_it_so(gate: Gate, dsn: str) -> None:
    with small(GatedConnectionPool, gate, dsn, close_returns=True) as pool:
        pool.getconn().close()
        assert gate.in_flight == 0
        assert pool.get_stats()["pool_available"] == 1
    assert_counted(gate, success=1)


def test_only_a_gate_will_do(pools: Pools, dsn: str) -> None:
    with pytest.raises(TypeError, match=r"gate must be a Gate, got 'postgresql://.*' \(str\)"):
        pools(dsn)


# --- the leak matrix -------------------------------------------------------------------------------


@pytest.mark.leak(HOOK, "exception")
def test_an_exception_in_the_block(pools: Pools, gate: Gate, dsn: str) -> None:
    with small(pools, gate, dsn) as pool:
        with pytest.raises(psycopg.errors.SyntaxError), pool.connection() as connection:
            connection.execute("nonsense")
        assert gate.in_flight == 0
        with pytest.raises(TimeoutError), pool.connection():
            raise TimeoutError
        assert gate.in_flight == 0
    assert_counted(gate, success=1, overload=1)


@pytest.mark.leak(HOOK, "base-exception")
@pytest.mark.parametrize("error", [Stop, SystemExit, GeneratorExit, KeyboardInterrupt])
def test_a_base_exception_in_the_block(
    pools: Pools, gate: Gate, dsn: str, error: type[BaseException]
) -> None:
    with small(pools, gate, dsn) as pool:
        with pytest.raises(error), pool.connection():
            raise error
        assert gate.in_flight == 0
    assert admitted(gate.stats()) == 1
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "timeout")
def test_a_checkout_that_times_out_is_overload(pools: Pools, gate: Gate, dsn: str) -> None:
    with small(pools, gate, dsn) as pool, pool.connection():
        with pytest.raises(PoolTimeout):
            in_thread(lambda: pool.getconn(timeout=0.01))
        assert gate.in_flight == 1
    assert_counted(gate, success=1, overload=1)


@pytest.mark.leak(HOOK, "timeout")
def test_what_the_pool_refuses_is_overload(pools: Pools, gate: Gate, dsn: str) -> None:
    gate.set_limit(3)
    with small(pools, gate, dsn, max_waiting=1) as pool:
        connection = pool.getconn()
        waiting = threading.Thread(target=lambda: pool.putconn(pool.getconn()))
        waiting.start()
        until(lambda: pool.get_stats().get("requests_waiting", 0) == 1)
        with pytest.raises(TooManyRequests):
            in_thread(pool.getconn)
        assert gate.in_flight == 2
        pool.putconn(connection)
        waiting.join(PATIENCE)
    assert_counted(gate, success=2, overload=1)


@pytest.mark.leak(HOOK, "timeout")
def test_a_statement_that_times_out_is_what_the_gate_says(pools: Pools, dsn: str) -> None:
    gate = Gate("db", limit=2, outcomes={psycopg.errors.QueryCanceled: "overload"})
    with small(pools, gate, dsn, kwargs={"options": "-c statement_timeout=1"}) as pool:
        with pytest.raises(psycopg.errors.QueryCanceled), pool.connection() as connection:
            connection.execute("select pg_sleep(10)")
        assert gate.in_flight == 0
    assert_counted(gate, overload=1)


@pytest.mark.leak(HOOK, "invalidate")
def test_a_connection_that_is_closed_in_the_block(pools: Pools, gate: Gate, dsn: str) -> None:
    with small(pools, gate, dsn) as pool:
        for _ in range(3):
            with pool.connection() as connection:
                connection.close()
            assert gate.in_flight == 0
    assert_counted(gate, success=3)


@pytest.mark.leak(HOOK, "invalidate")
def test_connections_that_fail_their_check(gate: Gate, dsn: str) -> None:
    """However often the pool tries, one permit for the checkout."""
    failures = [Stop("the check"), psycopg.OperationalError("the check")]

    def check(connection: object) -> None:
        if failures:
            raise failures.pop()

    with small(GatedConnectionPool, gate, dsn, check=check) as pool:
        with pytest.raises(Stop), pool.connection():
            pass
        assert gate.in_flight == 0
        with pool.connection():
            assert gate.in_flight == 1
    assert_counted(gate, success=1, ignore=1)


@pytest.mark.leak(HOOK, "invalidate")
def test_a_reset_that_raises(gate: Gate, dsn: str) -> None:
    def reset(connection: object) -> None:
        raise ValueError("a bug")

    with small(GatedConnectionPool, gate, dsn, reset=reset) as pool:
        for _ in range(3):
            with pool.connection():
                assert gate.in_flight == 1
            assert gate.in_flight == 0
    assert_counted(gate, success=3)


@pytest.mark.leak(HOOK, "exception")
def test_a_connection_of_somebody_else_s(pools: Pools, gate: Gate, dsn: str) -> None:
    with small(pools, gate, dsn) as pool, small(pools, gate, dsn) as other, psycopg.connect(dsn) as foreign:
        connection = other.getconn()
        for wrong in (connection, foreign):
            with pytest.raises(ValueError, match="can't return connection to pool"):
                pool.putconn(wrong)
        assert gate.in_flight == 1
        other.putconn(connection)
        assert gate.in_flight == 0
        with pytest.raises(ValueError, match="doesn't come from any pool"):
            other.putconn(connection)
    assert_counted(gate, success=1)


@pytest.mark.leak(HOOK, "gc")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_connection_that_is_never_put_back(pools: Pools, gate: Gate, dsn: str) -> None:
    for n in range(1, 4):
        with small(pools, gate, dsn) as pool:
            connection = pool.getconn()
            assert gate.in_flight == 1
            del connection
            collect()
            assert gate.in_flight == 0
            assert gate.stats().collected == n
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "gc")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_block_that_is_never_left(pools: Pools, gate: Gate, dsn: str) -> None:
    with small(pools, gate, dsn) as pool:
        block = pool.connection()
        block.__enter__()
        del block
        collect()
        assert gate.in_flight == 0
        with pool.connection():  # since the generator has returned it
            pass
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "nested")
def test_a_nested_checkout_is_free(gate: Gate, dsn: str) -> None:
    gate.set_limit(1)
    pool = GatedConnectionPool(gate, dsn, min_size=2, open=True)
    with pool, pool.connection(), pool.connection():
        assert gate.in_flight == 1
        with pytest.raises(Shed):
            in_thread(pool.getconn)
    assert_counted(gate, success=1)


@pytest.mark.leak(HOOK, "nested")
def test_the_permit_of_the_request_serves_all_layers(gate: Gate, dsn: str) -> None:
    """D32: counted once by the edge, the decorator and the pool, and with every place taken."""
    inside, looked = threading.Barrier(4), threading.Barrier(4)
    gate.set_limit(4)

    with GatedConnectionPool(gate, dsn, min_size=8, open=True) as pool:

        @gate.guard
        def handler() -> None:
            with pool.connection(), pool.connection():
                inside.wait(PATIENCE)
                assert gate.in_flight == 4
                looked.wait(PATIENCE)

        def request() -> None:
            with Hold.enter(gate) as hold, marked(hold):
                handler()

        together(*[request] * 4)
    assert gate.stats().high_water == 4
    assert_counted(gate, success=4)


@pytest.mark.leak(HOOK, "failed-connect")
def test_a_database_that_is_not_there(pools: Pools, gate: Gate) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    with small(pools, gate, nowhere, timeout=0.01) as pool:
        for _ in range(3):
            with pytest.raises((PoolTimeout, psycopg.OperationalError)), pool.connection():
                pass
            assert gate.in_flight == 0
    assert admitted(gate.stats()) == 3
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "dispose")
def test_a_pool_that_is_closed_with_a_connection_out(pools: Pools, gate: Gate, dsn: str) -> None:
    pool = small(pools, gate, dsn)
    for closed in (True, False):
        with pytest.raises(PoolClosed):
            pool.getconn()
        assert gate.in_flight == 0
        if closed:
            pool.open()
            connection = pool.getconn()
            pool.close()
            assert gate.in_flight == 1
            pool.putconn(connection)
            assert gate.in_flight == 0
    assert admitted(gate.stats()) == 3
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "dispose")
def test_a_pool_that_is_closed_while_somebody_waits(pools: Pools, gate: Gate, dsn: str) -> None:
    with small(pools, gate, dsn) as pool, pool.connection():
        errors: list[BaseException] = []

        def wait() -> None:
            try:
                pool.getconn()
            except PoolClosed as error:
                errors.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: pool.get_stats().get("requests_waiting", 0) == 1)
        pool.close()
        waiting.join(PATIENCE)
        assert len(errors) == 1
        assert gate.in_flight == 1
    assert_counted(gate, success=1, ignore=1)


@pytest.mark.leak(HOOK, "server-killed")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_server_is_killed(postgres_server: PostgresServer, gate: Gate) -> None:
    with small(GatedConnectionPool, gate, postgres_server.dsn, check=ConnectionPool.check_connection) as pool:
        with pytest.raises(psycopg.OperationalError), pool.connection() as connection:
            postgres_server.kill()
            connection.execute("select 1")
        assert gate.in_flight == 0
        with pytest.raises(PoolTimeout):
            pool.getconn(timeout=0.01)
        assert gate.in_flight == 0
        postgres_server.start()
        with pool.connection() as connection:
            assert connection.execute("select 1").fetchone() == (1,)
    collect()
    assert_at_rest(gate)


@pytest.mark.leak(HOOK, "keyboard-interrupt")
def test_interrupts_at_any_moment(dsn: str, seed: int) -> None:
    counts = interrupted(HOOK, dsn, rounds=1_000, seed=seed)
    assert counts["interrupted"] > 50
    assert counts["left"] == 0


# --- many at once ----------------------------------------------------------------------------------


def test_a_hammer(dsn: str, restless: None) -> None:
    """16 threads that do to their connections whatever can be done."""
    gate = Gate("db", limit=6)

    def nested(connection: object) -> None:
        with pool.connection(timeout=0.05):
            pass

    def raising(connection: object) -> None:
        raise ValueError("a bug")

    acts: list[Callable[[Any], object]] = [
        lambda connection: connection.execute("select 1"),
        lambda connection: connection.close(),
        lambda connection: None,
        raising,
        nested,
    ]

    def user(number: int) -> Callable[[], int]:
        def use() -> int:
            refused = 0
            for n in range(25):
                try:
                    with pool.connection(timeout=0.05) as connection:
                        acts[(number + n) % len(acts)](connection)
                except Shed:
                    refused += 1
                except (ValueError, PoolTimeout):
                    pass
            return refused

        return use

    with GatedConnectionPool(gate, dsn, min_size=4, open=True) as pool:
        refused = sum(together(*[user(number) for number in range(16)]))
    stats = gate.stats()
    assert stats.high_water <= gate.limit
    assert shed(stats) == refused
    assert stats.collected == 0
    assert_at_rest(gate)
