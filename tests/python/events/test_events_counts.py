"""A thousand mixed attempts, each counted once: in the statistics, in OpenTelemetry, in events and log lines
(field fault D34)."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import random
from collections import Counter
from typing import Any

import pytest
from gatekit import admitted, assert_at_rest, shed
from tidegate import Event, Gate, Priority, Shed, use_priority
from tidegate.logs import log_events

if importlib.util.find_spec("opentelemetry.sdk") is None:
    pytest.skip("NOT TESTED: opentelemetry-sdk is not installed", allow_module_level=True)

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tidegate.otel import instrument

ATTEMPTS = 1_000


class Counting(logging.Handler):
    """How many sheds log lines tell of."""

    sheds = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.sheds += hasattr(record, "reason") + getattr(record, "suppressed", 0)


def test_d34_a_thousand_mixed_attempts_are_counted_once_everywhere() -> None:
    seed = random.randrange(2**32)
    print(f"TIDEGATE_SEED={seed}")
    gate = Gate("db", limit=8, timing=True)
    events: list[Event] = []
    gate.subscribe(events.append, ["shed", "released"])
    logger, lines = logging.Logger("mine"), Counting()
    logger.addHandler(lines)
    end_of_logging = log_events(gate, logger=logger)
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    instrument(gate, provider)

    ends = asyncio.run(attempts(gate, random.Random(seed)))
    end_of_logging()

    stats = gate.stats()
    assert sum(ends.values()) == ATTEMPTS
    assert set(ends) == {"shed", "answered", "failed", "timed out", "cancelled"}, "not everything happened"
    assert admitted(stats) + shed(stats) == ATTEMPTS
    assert shed(stats) == ends["shed"]

    counted: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.data.data_points:
            if metric.name == "tidegate.requests":
                counted[point.attributes["outcome"]] += point.value
            if metric.name == "tidegate.permit.duration":
                held[point.attributes["outcome"]] += point.count
    assert counted == {"admitted": admitted(stats), "shed": shed(stats)}

    sheds = Counter((event.priority, event.reason) for event in events if event.kind == "shed")
    assert sheds == Counter(
        {(priority, why): n for priority, reasons in stats.shed.items() for why, n in reasons.items() if n}
    )
    assert lines.sheds == shed(stats)

    # Permits are told of one by one; the bare blocks are the others.
    outcomes = Counter(str(event.outcome) for event in events if event.kind == "released")
    assert outcomes == held
    assert sum(outcomes.values()) + ends.bare == admitted(stats)  # type: ignore[attr-defined]
    assert_at_rest(gate)
    provider.shutdown()


class Ends(Counter[str]):
    """How attempts ended, and how many of those that were let in had no permit."""

    bare = 0


async def attempts(gate: Gate, draw: random.Random) -> Ends:
    """Waves of concurrent attempts that end in every way."""
    ends = Ends()

    async def work(kind: int) -> None:
        await asyncio.sleep(0)
        if kind == 0:
            raise ValueError("a bug")
        if kind == 1:
            raise TimeoutError
        if kind == 2:
            asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(0)

    async def attempt(entry: int, kind: int, priority: Priority, weight: int) -> None:
        try:
            if entry == 0:
                with use_priority(priority), gate:
                    ends.bare += 1
                    await work(kind)
            elif entry == 1:
                async with gate.admit(priority=priority, weight=weight):
                    await work(kind)
            elif entry == 2:
                await gate.guard(work, priority=priority)(kind)
            else:
                permit: Any = gate.try_admit(priority=priority, weight=weight)
                if permit is None:
                    ends["shed"] += 1
                    return
                with permit:
                    await work(kind)
        except Shed:
            ends["shed"] += 1
        except ValueError:
            ends["failed"] += 1
        except TimeoutError:
            ends["timed out"] += 1
        except asyncio.CancelledError:
            ends["cancelled"] += 1
        else:
            ends["answered"] += 1

    for _ in range(ATTEMPTS // 20):
        wave = [
            attempt(draw.randrange(4), draw.randrange(5), draw.choice(list(Priority)), draw.randint(1, 3))
            for _ in range(20)
        ]
        await asyncio.gather(*wave)
    return ends
