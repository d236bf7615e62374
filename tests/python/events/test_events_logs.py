"""Log lines: at most one a second for sheds, and none of them is lost."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from gatekit import in_child, output_of, shed, together
from tidegate import ConfigError, Gate, Signal
from tidegate.logs import log_events
from tidegate.testing import ManualClock

SECOND = 1_000_000_000
Log = Callable[..., Callable[[], None]]


class Lines(logging.Handler):
    """The records that reach it, and what they read as."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def read(self) -> list[str]:
        """The lines since this was last called."""
        records, self.records = self.records, []
        return [f"{record.levelname} {record.getMessage()}" for record in records]


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger("tidegate")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def log() -> Iterator[Log]:
    """``log_events``, ended with the test: what it suppressed would be told at the exit of pytest."""
    with ExitStack() as ends:

        def log(gate: Gate, **options: Any) -> Callable[[], None]:
            return ends.callback(log_events(gate, **options))

        yield log


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def gate(clock: ManualClock) -> Gate:
    return Gate("db", limit=0, clock=clock)


SHED = "WARNING gate=db event=shed reason=limit priority=critical weight=1 in_flight=0 limit=0 suppressed="


def refuse(gate: Gate, times: int) -> None:
    for _ in range(times):
        assert gate.try_admit() is None


# --- sheds -------------------------------------------------------------------------------------


def test_the_first_shed_is_told_at_once_and_a_second_has_one_line(
    gate: Gate, clock: ManualClock, lines: Lines, log: Log
) -> None:
    log(gate)
    refuse(gate, 1)
    assert lines.read() == [SHED + "0"]
    refuse(gate, 100)
    clock.advance(SECOND - 1)
    refuse(gate, 20)
    assert lines.read() == []
    clock.advance(1)
    refuse(gate, 5)
    assert lines.read() == [SHED + "120"]
    clock.advance(10 * SECOND)
    refuse(gate, 1)
    assert lines.read() == [SHED + "4"]


def test_a_record_has_the_fields_as_attributes(gate: Gate, lines: Lines, log: Log) -> None:
    log(gate)
    gate.set_limit(10)
    with gate.admit(weight=7):
        assert gate.try_admit(priority="sheddable", weight=3) is None
    limit, refused = lines.records
    assert (limit.name, limit.gate, limit.event, limit.previous, limit.limit) == (
        "tidegate",
        "db",
        "limit",
        0,
        10,
    )
    assert (refused.gate, refused.event, refused.reason, refused.priority) == (
        "db",
        "shed",
        "priority",
        "sheddable",
    )
    assert (refused.weight, refused.in_flight, refused.limit, refused.suppressed) == (3, 7, 10, 0)


def test_each_gate_has_its_own_lines(gate: Gate, clock: ManualClock, lines: Lines, log: Log) -> None:
    other = Gate("cache", limit=0, clock=clock)
    log(gate)
    log(other)
    for each in (gate, other):
        refuse(each, 2)
    assert lines.read() == [SHED + "0", SHED.replace("db", "cache") + "0"]


def test_an_interval_of_ones_own_and_none_at_all(
    gate: Gate, clock: ManualClock, lines: Lines, log: Log
) -> None:
    end = log(gate, interval=60)
    refuse(gate, 2)
    clock.advance(59 * SECOND)
    refuse(gate, 1)
    assert lines.read() == [SHED + "0"]
    clock.advance(SECOND)
    refuse(gate, 1)
    assert lines.read() == [SHED + "2"]
    end()
    log(gate, interval=0)
    refuse(gate, 3)
    assert lines.read() == [SHED + "0"] * 3


@pytest.mark.parametrize("interval", [-1, float("nan")])
def test_a_bad_interval_is_refused(gate: Gate, interval: float, lines: Lines, log: Log) -> None:
    with pytest.raises(ConfigError, match="interval must be a number of seconds from 0, got"):
        log(gate, interval=interval)
    refuse(gate, 1)
    assert not lines.records


# --- everything else ---------------------------------------------------------------------------


def test_changes_and_the_end_are_always_told(gate: Gate, lines: Lines, log: Log) -> None:
    log(gate)
    for limit in (5, 6):
        gate.set_limit(limit, cause="deploy")
    gate.set_thresholds({"sheddable": 0.5})
    gate.set_enforce(False)
    gate.close()
    assert lines.read() == [
        "INFO gate=db event=limit previous=0 limit=5 cause=deploy",
        "INFO gate=db event=limit previous=5 limit=6 cause=deploy",
        "INFO gate=db event=thresholds thresholds=critical_plus:6,critical:6,sheddable_plus:6,sheddable:3",
        "INFO gate=db event=enforce enforce=false",
        "INFO gate=db event=closed in_flight=0",
        "INFO gate=db event=drained",
    ]


@pytest.mark.parametrize(
    ("cause", "shown"),
    [
        ("two words", '"two words"'),
        ("line\nWARNING gate=db event=shed", r'"line\nWARNING gate=db event=shed"'),
        ('a"b', r'"a\"b"'),
        ("", '""'),
        ("größer", "größer"),
    ],
)
def test_no_value_can_pretend_to_be_another_line(
    gate: Gate, cause: str, shown: str, lines: Lines, log: Log
) -> None:
    log(gate)
    gate.set_limit(1, cause=cause)
    assert lines.records[0].cause == cause
    assert lines.read() == [f"INFO gate=db event=limit previous=0 limit=1 cause={shown}"]


# --- what was suppressed -----------------------------------------------------------------------


def test_the_next_line_of_any_kind_tells_what_was_suppressed(gate: Gate, lines: Lines, log: Log) -> None:
    log(gate)
    refuse(gate, 8)
    lines.read()
    gate.set_limit(1)
    gate.close()
    assert lines.read() == [
        "WARNING gate=db event=limit previous=0 limit=1 suppressed=7",
        "INFO gate=db event=closed in_flight=0",
        "INFO gate=db event=drained",
    ]


def test_so_does_the_end_of_logging(gate: Gate, lines: Lines, log: Log) -> None:
    end = log(gate)
    refuse(gate, 4)
    lines.read()
    end()
    assert lines.read() == ["WARNING gate=db event=shed suppressed=3"]
    refuse(gate, 1)
    end()
    assert lines.read() == []


def test_and_the_exit_of_the_interpreter() -> None:
    script = """
        import logging, sys, tidegate.logs
        logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.WARNING)
        gate = tidegate.Gate("db", 0)
        tidegate.logs.log_events(gate, interval=3600)
        for _ in range(3):
            gate.try_admit()
        del gate
    """
    assert output_of(script).splitlines()[1:] == ["gate=db event=shed suppressed=2"]


def test_a_line_that_nobody_reads_tells_nothing_of_what_was_suppressed(
    gate: Gate, clock: ManualClock, lines: Lines, log: Log
) -> None:
    logger = logging.getLogger("tidegate")
    log(gate)
    refuse(gate, 3)
    lines.read()
    logger.setLevel(logging.ERROR)
    clock.advance(SECOND)
    refuse(gate, 2)
    gate.set_limit(0)
    logger.setLevel(logging.WARNING)  # as it is where nobody configured it: changes are not shown
    gate.set_limit(0)
    gate.set_limit(0)
    assert lines.read() == ["WARNING gate=db event=limit previous=0 limit=0 suppressed=4"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_does_not_repeat_what_its_parent_suppressed(gate: Gate, lines: Lines, log: Log) -> None:
    log(gate)
    refuse(gate, 3)
    lines.read()

    def child() -> list[str]:
        gate.close()
        return lines.read()

    assert in_child(child) == ["INFO gate=db event=closed in_flight=0", "INFO gate=db event=drained"]
    gate.close()
    assert lines.read()[0] == "WARNING gate=db event=closed in_flight=0 suppressed=2"


def test_of_many_threads_each_shed_is_a_line_or_counted_in_one(lines: Lines, log: Log) -> None:
    gate = Gate("db", limit=0)  # on the real clock
    end = log(gate, interval=1e-4)
    together(*[lambda: refuse(gate, 500)] * 6)
    end()
    told = [record for record in lines.records if hasattr(record, "reason")]
    assert len(told) + sum(record.suppressed for record in lines.records) == shed(gate.stats()) == 3_000


# --- logging -----------------------------------------------------------------------------------


def test_a_logger_of_ones_own(gate: Gate, lines: Lines, log: Log) -> None:
    own, mine = Lines(), logging.Logger("mine")
    mine.addHandler(own)
    log(gate, logger=mine)
    refuse(gate, 1)
    assert own.read() == [SHED + "0"]
    assert not lines.records


def test_a_handler_that_fails_or_sheds_harms_nobody(
    gate: Gate, lines: Lines, log: Log, unraisable: list[Any]
) -> None:
    class Failing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            gate.try_admit()
            raise OSError("disk full")

    logger = logging.Logger("mine")
    logger.addHandler(Failing())
    log(gate, logger=logger)
    log(gate, interval=0)
    refuse(gate, 1)
    assert [str(error) for error, _ in unraisable] == ["disk full"]
    assert lines.read() == [SHED + "0"] * 2


def test_importing_it_imports_no_other_part() -> None:
    script = """
        import sys, tidegate.logs
        print(*sorted(name for name in sys.modules if name.startswith("tidegate")))
    """
    assert "tidegate.otel" not in output_of(script)


# --- what happens by itself --------------------------------------------------------------------------


def failing(clock: ManualClock, rounds: int) -> Gate:
    gate = Gate("db", controller="aimd", max=1_000_000, prior=1_000_000, clock=clock)
    overload(gate, clock, rounds)
    return gate


def overload(gate: Gate, clock: ManualClock, rounds: int) -> None:
    """Twenty completions a second, all of them too much: the limit falls each second."""
    for _ in range(rounds * 20):
        permit = gate.try_admit()
        assert permit is not None
        clock.advance(SECOND // 20)
        permit.release("overload")


def test_moves_of_a_controller_have_at_most_one_line_an_interval(
    lines: Lines, log: Log, clock: ManualClock
) -> None:
    gate = failing(clock, 0)
    end = log(gate, interval=5)
    overload(gate, clock, 30)
    moves = gate.controller.moves
    assert moves > 20
    read = lines.read()
    assert 5 <= len(read) <= 7
    first = gate.limit_history[0]
    assert read[0] == (
        f"INFO gate=db event=limit previous={first.previous} limit={first.limit} cause=lower unlogged=0"
    )
    end()
    read += lines.read()
    assert sum(int(line.rpartition("unlogged=")[2]) for line in read) + len(read) - 1 == moves
    assert read[-1].startswith("INFO gate=db event=limit unlogged=")


def test_a_limit_that_is_set_always_has_a_line(lines: Lines, log: Log, clock: ManualClock) -> None:
    gate = failing(clock, 0)
    log(gate, interval=3_600)
    overload(gate, clock, 5)
    gate.set_limit(500_000, cause="raised by hand")
    gate.set_limit(500_001)
    assert [line.partition(" limit=")[2] for line in lines.read()[1:]] == [
        '500000 cause="raised by hand"',
        "500001",
    ]


def test_moves_do_not_lose_the_sheds_that_were_suppressed(lines: Lines, log: Log, clock: ManualClock) -> None:
    gate = failing(clock, 0)
    log(gate, interval=3_600)
    for _ in range(3):
        assert gate.try_admit(weight=2_000_000) is None
    overload(gate, clock, 3)
    shed_line, move_line = lines.read()
    assert shed_line.endswith("suppressed=0")
    assert move_line.startswith("WARNING gate=db event=limit ")
    assert move_line.endswith("cause=lower unlogged=0 suppressed=2")


def test_what_signals_do_has_a_line_each(lines: Lines, log: Log, clock: ManualClock) -> None:
    at_once: dict[str, Any] = {"enter_for": 0, "leave_for": 0, "dwell": 0, "ramp": 0}
    gate = Gate("db", 5, signals=[Signal("waits", **at_once)], clock=clock)
    log(gate)
    for value in (0.9, 0.1):
        gate.signal("waits", value)
        clock.advance(SECOND)
        gate.try_admit(priority="critical_plus").release()
        clock.advance(SECOND)
        gate.try_admit(priority="critical_plus").release()
    told = "gate=db event=pressure cause={} signal=waits overloaded={} value={} threshold={} held={}"
    assert lines.read() == [
        "WARNING " + told.format("entered", "true", "0.9", "0.85", "0"),
        "INFO " + told.format("left", "false", "0.1", "0.7", "1"),
    ]
