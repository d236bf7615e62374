"""What is shown: names, labels, values, and that each attempt is counted once (field faults D34, D35)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import sys
from pathlib import Path

import prometheus_client
import pytest
from gatekit import output_of
from scraping import Scrape, families
from tidegate import Gate, Shed, Signal
from tidegate.asgi import GateMiddleware
from tidegate.prometheus import collector, exposition
from tidegate.testing import ManualClock

pytestmark = pytest.mark.usefixtures("unpublished")


def scrape(*gates: Gate, openmetrics: bool = False) -> Scrape:
    return Scrape(exposition(*gates, openmetrics=openmetrics))


def test_the_names_and_labels_are_those_of_the_docs() -> None:
    gate = Gate("db", limit=5, timing=True, signals=[Signal("waits")])
    gate.set_limit(6, cause="deploy")
    described = {family.name: (family.type, family.samples) for family in families(exposition(gate))}
    labels = {
        name: (kind, set().union(*(sample.labels for sample in samples)))
        for name, (kind, samples) in described.items()
    }
    assert labels == {
        "tidegate_requests": ("counter", {"gate", "priority", "outcome", "reason"}),
        "tidegate_released": ("counter", {"gate", "outcome"}),
        "tidegate_in_flight": ("gauge", {"gate"}),
        "tidegate_limit": ("gauge", {"gate"}),
        "tidegate_pressure": ("gauge", {"gate"}),
        "tidegate_overloaded": ("gauge", {"gate"}),
        "tidegate_processes": ("gauge", {"gate"}),
        "tidegate_permit_duration_seconds": ("histogram", {"gate", "outcome", "le"}),
        "tidegate_limit_changes": ("counter", {"gate", "cause"}),
    }


@pytest.mark.parametrize("openmetrics", [False, True])
def test_values(openmetrics: bool) -> None:
    clock = ManualClock()
    gate = Gate("db", limit=4, timing=True, clock=clock)
    permit = gate.try_admit(weight=2)
    inside = gate.try_admit(priority="critical_plus")
    clock.advance(30_000_000)
    permit.release("overload")
    gate.set_limit(1)
    gate.set_limit(0, cause="deploy")
    assert gate.try_admit(priority="sheddable") is None
    gate.set_enforce(False)
    gate.try_admit(priority="sheddable").release()
    gate.set_limit(3)
    read = scrape(gate, openmetrics=openmetrics)
    assert read.value("requests_total", gate="db", priority="critical", outcome="admitted", reason="") == 1
    assert read.value("requests_total", gate="db", priority="sheddable", outcome="shed", reason="limit") == 1
    assert read.value("requests_total", gate="db", priority="sheddable", outcome="would_shed", reason="") == 1
    assert read.total("requests_total") == 4
    assert read.value("released_total", gate="db", outcome="overload") == 1
    assert (read.value("in_flight", gate="db"), read.value("limit", gate="db")) == (1, 3)
    assert read.value("processes", gate="db") == 1
    assert read.value("limit_changes_total", gate="db", cause="manual") == 2
    assert read.value("limit_changes_total", gate="db", cause="deploy") == 1
    duration = "permit_duration_seconds"
    overload = {"gate": "db", "outcome": "overload"}
    assert read.value(f"{duration}_bucket", **overload, le="0.025") == 0
    assert read.value(f"{duration}_bucket", **overload, le="0.05") == 1
    assert read.value(f"{duration}_bucket", **overload, le="300.0") == 1
    assert read.value(f"{duration}_bucket", **overload, le="+Inf") == 1
    assert (read.value(f"{duration}_count", **overload), read.value(f"{duration}_sum", **overload)) == (
        1,
        0.03,
    )
    inside.release()


def test_without_timing_there_are_no_durations() -> None:
    assert scrape(Gate("db", limit=1)).total("permit_duration_seconds_count") == 0
    assert "duration" not in exposition(Gate("db", limit=1))


def test_d34_a_thousand_mixed_attempts_are_counted_once_each() -> None:
    gate = Gate("mixed", limit=3)
    seeded = random.Random(20_261_130)

    async def attempt(kind: int) -> None:
        with contextlib.suppress(Shed, ValueError, TimeoutError, asyncio.CancelledError):
            async with gate.admit(priority=seeded.choice(["critical", "sheddable"])):
                await asyncio.sleep(0)
                if kind == 0:
                    raise ValueError("a bug")
                if kind == 1:
                    async with asyncio.timeout(0):
                        await asyncio.sleep(60)
                if kind == 2:
                    asyncio.current_task().cancel()
                    await asyncio.sleep(60)

    async def attempts() -> None:
        for _ in range(100):
            await asyncio.gather(*(attempt(seeded.randrange(4)) for _ in range(10)))

    asyncio.run(attempts())
    read = scrape(gate)
    assert read.total("requests_total") == 1_000
    admitted = read.total("requests_total", outcome="admitted")
    assert 0 < admitted < 1_000
    assert read.total("released_total") == admitted
    assert all(read.value("released_total", gate="mixed", outcome=each) for each in ("overload", "ignore"))
    assert read.value("in_flight", gate="mixed") == 0


def test_d34_the_limit_follows_set_limit() -> None:
    gate = Gate("db", limit=5)
    for limit in (7, 0, 2**31 - 1):
        gate.set_limit(limit)
        assert scrape(gate).value("limit", gate="db") == limit


def test_d34_the_limit_and_its_causes_follow_a_controller() -> None:
    clock = ManualClock(1)
    gate = Gate("db", controller="aimd", max=100, prior=100, clock=clock)
    gate.set_limit(90, cause="deploy")
    for _ in range(50):
        permit = gate.try_admit()
        clock.advance(100_000_000)
        permit.release("overload")
    read = scrape(gate)
    assert read.value("limit", gate="db") == gate.limit < 90
    assert read.value("limit_changes_total", gate="db", cause="lower") == gate.controller.moves > 0
    assert read.value("limit_changes_total", gate="db", cause="deploy") == 1


def test_the_pressure_is_the_highest_and_silence_is_none() -> None:
    clock = ManualClock(1)
    one, other, without = (
        Gate("db", 5, signals=[Signal("waits", enter_for=0, ramp=0)], clock=clock),
        Gate("db", 5, signals=[Signal("waits", enter_for=0, ramp=0)], clock=clock),
        Gate("plain", 5),
    )
    read = scrape(one, other, without)
    assert (read.value("pressure", gate="db"), read.value("overloaded", gate="db")) == (0, 0)
    for gate, value in ((one, 0.94), (other, 0.85)):
        gate.signal("waits", value)
        clock.advance(1_000_000_000)
        assert gate.try_admit(priority="sheddable") is None
        assert gate.stats().overloaded
    read = scrape(one, other, without)
    assert read.value("pressure", gate="db") == one.stats().pressure == pytest.approx(0.8)
    assert read.value("overloaded", gate="db") == 2
    assert 'tidegate_pressure{gate="plain"}' not in exposition(without)
    assert without.stats().pressure is None and not without.stats().overloaded


def test_d34_a_hundred_thousand_paths_and_causes_do_not_add_a_series() -> None:
    gate = Gate("paths", limit=1)

    async def app(scope: object, receive: object, send: object) -> None:
        gate.set_limit(1, cause=f"cause {gate.stats().generation}")

    async def receive() -> dict[str, object]:
        return {}

    async def send(message: object) -> None: ...

    async def requests(n: int) -> None:
        middleware = GateMiddleware(app, gate, priority=lambda scope: scope["path"])
        for number in range(n):
            await middleware({"type": "http", "path": f"/user/{number}", "method": "GET"}, receive, send)

    asyncio.run(requests(100))
    before = scrape(gate).series.keys()
    asyncio.run(requests(100_000))
    read = scrape(gate)
    assert read.series.keys() == before
    assert read.total("requests_total") == read.total("limit_changes_total") == 100_100
    assert read.value("limit_changes_total", gate="paths", cause="other") == 100_100 - 16


@pytest.mark.parametrize("openmetrics", [False, True])
@pytest.mark.parametrize(
    "name", ['quote"', "back\\slash", "\\n", "x", "x_total", "/../", "é\u0301🎉", "{le=1}", "x" * 255, " "]
)
def test_d35_any_name_is_shown_as_it_is(name: str, openmetrics: bool) -> None:
    gate = Gate(name, limit=1)
    gate.set_limit(2, cause=name)
    read = scrape(gate, openmetrics=openmetrics)
    assert read.value("limit", gate=name) == 2
    cut = name.encode()[:48].decode()
    assert read.value("limit_changes_total", gate=name, cause=cut) == 1


def test_d35_a_newline_in_a_cause_forges_no_line() -> None:
    gate = Gate("db", limit=1)
    gate.set_limit(2, cause='deploy\ntidegate_limit{gate="db"} 99')
    read = scrape(gate)
    assert read.value("limit_changes_total", gate="db", cause='deploy tidegate_limit{gate="db"} 99') == 1


def test_d35_x_and_x_total_are_two_gates_and_x_twice_is_one() -> None:
    first, second, other = Gate("x", limit=1), Gate("x", limit=10), Gate("x_total", limit=100)
    with first, second, second:
        read = scrape(first, second, other)
        assert (read.value("limit", gate="x"), read.value("limit", gate="x_total")) == (11, 100)
        assert (read.value("in_flight", gate="x"), read.value("in_flight", gate="x_total")) == (3, 0)
    assert scrape(first, first).value("limit", gate="x") == 1, "one gate is counted once"


def test_none_given_are_all_that_live() -> None:
    gate = Gate("for a while", limit=1)
    assert scrape().value("limit", gate="for a while") == 1
    del gate
    gc.collect()
    assert scrape().value("limit", gate="for a while") is None


def test_a_closed_gate_has_no_gauges_once_it_is_empty() -> None:
    gate = Gate("db", limit=5)
    permit = gate.try_admit()
    gate.close()
    assert (scrape(gate).value("limit", gate="db"), scrape(gate).value("in_flight", gate="db")) == (None, 1)
    permit.release()
    read = scrape(gate)
    assert (read.value("in_flight", gate="db"), read.value("processes", gate="db")) == (None, 0)
    assert read.total("released_total") == 1


def test_a_registry_of_prometheus_client_shows_the_same() -> None:
    gate = Gate('the "db"', limit=5, timing=True)
    with gate.admit():
        pass
    gate.set_limit(6, cause="deploy")
    registry = prometheus_client.CollectorRegistry()
    registry.register(collector(gate))
    text = prometheus_client.generate_latest(registry).decode()
    assert Scrape(text).series == scrape(gate).series


@pytest.mark.skipif(sys.platform == "win32", reason="gates are published on Linux and macOS only")
def test_a_gate_that_finds_no_room_works_and_is_told_of(directory: Path) -> None:
    script = """
        import resource, warnings
        from tidegate import Gate, prometheus

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # in the place of a disk that is full
        with warnings.catch_warnings(record=True) as caught:
            gate = Gate("db", 1)
        with gate:
            print(gate.in_flight, *(f"{each.category.__name__}: {each.message}" for each in caught))
        print(*(line for line in prometheus.exposition().splitlines() if line.endswith("s 1")))
    """
    assert output_of(script).splitlines() == [
        "1 RuntimeWarning: TIDEGATE_METRICS_DIR has no room for gate 'db': metrics go without it",
        "tidegate_unpublished_gates 1",
    ]


def test_published_gates_are_shown_by_name(directory: Path) -> None:
    shown, hidden = Gate("shown", limit=5), Gate("hidden", limit=5)
    with shown, hidden:
        read = scrape(shown)
        assert (read.value("in_flight", gate="shown"), read.value("in_flight", gate="hidden")) == (1, None)
        assert read.value("unreadable_files") == 0
        assert scrape().value("in_flight", gate="hidden") == 1
        (directory / "damaged.tidegate").write_bytes(b"x" * 100)
        assert scrape().value("unreadable_files") == 1
    assert Scrape(exposition(directory=directory)).value("limit", gate="shown") == 5
