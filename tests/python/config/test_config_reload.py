"""A reload changes gates that are in use, tells their hooks, and loses nothing."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tidegate import Change, ConfigError, Event, Gate, Gates, Priority, Reason, Shed
from tidegate.priorities import Request, priority_source

DB = "[gates.db]\nlimit = {}\n"
OTHER = "[gates.other]\nlimit = 1\n"


def told_by(gate: Gate) -> list[tuple[str, dict[str, Any]]]:
    told: list[tuple[str, dict[str, Any]]] = []

    def hook(event: Event) -> None:
        told.append((str(event.kind), event.fields))

    gate.subscribe(hook)
    return told


def sentences(changes: list[Change]) -> list[str]:
    return [str(change) for change in changes]


def test_d24_what_is_held_stays_counted() -> None:
    gates = Gates.from_toml(DB.format(5) + OTHER)
    db = gates["db"]
    held = [db.try_admit() for _ in range(5)]
    assert gates.reload(DB.format(5) + OTHER) == []
    assert db.try_admit() is None

    gates.reload(DB.format(3) + OTHER)
    while db.in_flight >= 3:
        assert db.try_admit() is None
        permit = held.pop()
        assert permit
        permit.release()
    held.append(db.try_admit())
    assert held[-1] and db.try_admit() is None

    gates.reload(DB.format(8) + OTHER)
    for _ in range(5):
        held.append(db.try_admit())
        assert held[-1]
    assert db.try_admit() is None

    assert sentences(gates.reload(OTHER)) == ["gate db: removed, and closed, with 8 in flight"]
    with pytest.raises(Shed) as caught:
        db.admit().__enter__()
    assert caught.value.reason is Reason.CLOSED
    assert sentences(gates.reload(DB.format(8) + OTHER)) == [
        "gate db: added again, and open, with 8 in flight"
    ]
    assert gates["db"] is db and db.in_flight == 8 and db.try_admit() is None

    with pytest.raises(ConfigError):
        gates.reload(DB.format("'many'"))
    assert (db.limit, db.in_flight, list(gates)) == (8, 8, ["db", "other"])
    for permit in held:
        assert permit
        permit.release()
    assert db.in_flight == 0


def test_what_changed_is_data_too() -> None:
    gates = Gates.from_toml(DB.format(20))
    changes = gates.reload(
        DB.format(40)
        + "thresholds = { sheddable_plus = { reserve = 4 }, sheddable = 0.5 }\nenforce = false\n"
        + "default_priority = 'sheddable'\nrate = '150/min'\nburst = 10\n"
    )
    assert [(change.gate, change.kind, change.key, change.previous, change.value) for change in changes] == [
        ("db", "changed", "limit", 20, 40),
        (
            "db",
            "changed",
            "thresholds",
            {},
            {Priority.SHEDDABLE_PLUS: {"reserve": 4}, Priority.SHEDDABLE: 0.5},
        ),
        ("db", "changed", "rate", None, {"rate": "150/min", "burst": 10}),
        ("db", "changed", "default_priority", Priority.CRITICAL, Priority.SHEDDABLE),
        ("db", "changed", "enforce", True, False),
    ]
    assert repr(changes[0]) == "<Change: gate db: limit 20 -> 40>"
    db = gates["db"]
    assert (db.limit, db.enforce, db.default_priority) == (40, False, "sheddable")
    changes = gates.reload(OTHER + "[classifier]\ndefault = 'critical'\n")
    assert [(change.gate, change.kind, change.key, change.value) for change in changes] == [
        ("other", "added", None, None),
        ("db", "removed", None, None),
        (None, "changed", None, None),
    ]


def test_hooks_are_told_as_by_the_setters() -> None:
    gates = Gates.from_toml(DB.format(20))
    db = gates["db"]
    told = told_by(db)
    gates.reload(DB.format(40) + "thresholds = { sheddable = 0.5 }\nenforce = false\nrate = '2/s'\n")
    weights = dict(zip(Priority, (40, 40, 36, 20), strict=True))
    assert told == [
        ("limit", {"previous": 20, "limit": 40, "cause": "reload"}),
        ("thresholds", {"thresholds": weights}),
        ("rate", {"rate": "2/s", "burst": 2, "cause": "reload"}),
        ("enforce", {"enforce": False}),
    ]
    assert db.limit_history[-1].cause == "reload"


def test_hooks_are_told_of_a_removed_gate_and_when_it_is_drained() -> None:
    gates = Gates.from_toml(DB.format(20) + OTHER)
    db = gates["db"]
    told = told_by(db)
    permit = db.try_admit()
    assert permit
    gates.reload(OTHER)
    assert told == [("closed", {"in_flight": 1})]
    permit.release()
    assert told.pop() == ("drained", {})

    # Open again before it is drained: nobody is told that it was.
    gates.reload(DB.format(20) + OTHER)
    permit = db.try_admit()
    assert permit
    gates.reload(OTHER)
    gates.reload(DB.format(20) + OTHER)
    permit.release()
    assert [kind for kind, _ in told] == ["closed", "closed"]
    # Closed for good by the program while the file has it not: told once.
    gates.reload(OTHER)
    assert [kind for kind, _ in told[2:]] == ["closed", "drained"]
    db.close()
    assert sentences(gates.reload(DB.format(20) + OTHER)) == [
        "gate db: added again, but it stays closed: it was closed by the program"
    ]
    assert db.closed and len(told) == 4


def test_a_hook_that_interrupts_stops_no_change() -> None:
    gates = Gates.from_toml(DB.format(20) + OTHER)
    told = told_by(gates["other"])

    def interrupted(_event: Event) -> None:
        raise KeyboardInterrupt

    gates["db"].subscribe(interrupted)
    with pytest.raises(KeyboardInterrupt):
        gates.reload(DB.format(21) + OTHER.replace("1", "2"))
    assert (gates["db"].limit, gates["other"].limit) == (21, 2)
    assert [kind for kind, _ in told] == ["limit"]


def test_the_classifier_is_that_of_the_last_file() -> None:
    rules = (
        "[classifier]\ndefault = 'critical'\n"
        "[[classifier.rules]]\nmatch = {{ path = '/r*' }}\npriority = '{}'\n"
    )
    gates = Gates.from_toml(rules.format("sheddable"))
    classifier = gates.classifier
    assert classifier is not None and gates.classifier is classifier
    assert gates.classify({"path": "/reports"}) is Priority.SHEDDABLE
    assert gates.reload(rules.format("sheddable")) == []
    assert gates.classifier is classifier
    assert sentences(gates.reload(rules.format("sheddable_plus"))) == ["classifier: changed"]
    assert gates.classifier is not classifier
    assert gates.classify({"path": "/reports"}) is Priority.SHEDDABLE_PLUS
    assert classifier.classify({"path": "/reports"}) is Priority.SHEDDABLE
    gates.reload(OTHER)
    assert gates.classifier is None and gates.classify({"path": "/reports"}) is None


def test_reloads_under_load(restless: None) -> None:
    texts = [DB.format(6) + OTHER, DB.format(2) + OTHER, OTHER, DB.format(4) + "enforce = false\n" + OTHER]
    gates = Gates.from_toml(texts[0])
    db = gates["db"]
    stop = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            while not stop.is_set():
                permit = db.try_admit(priority="sheddable")
                if permit:
                    permit.release()
                try:
                    with db:
                        pass
                except Shed:
                    pass
        except BaseException as error:
            failed.append(error)

    def reload(offset: int) -> None:
        try:
            for round_ in range(150):
                gates.reload(texts[(round_ + offset) % len(texts)])
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    reloaders = [threading.Thread(target=reload, args=(offset,)) for offset in range(2)]
    for thread in workers + reloaders:
        thread.start()
    for thread in reloaders:
        thread.join()
    stop.set()
    for thread in workers:
        thread.join()
    gates.reload(texts[0])
    stats = db.stats()
    assert not failed
    assert (stats.in_flight, stats.over_in_flight, stats.unmatched_exits) == (0, 0, 0)
    assert stats.high_water <= 6
    assert gates["db"] is db and not db.closed


def test_an_edge_goes_by_the_rules_that_the_file_has() -> None:
    rule = "[classifier]\n[[classifier.rules]]\nmatch = {{ {} = '*' }}\npriority = '{}'\n"
    gates = Gates.from_toml(rule.format("path", "sheddable"))
    decide = priority_source(gates)
    request = Request("GET", "/", header=lambda _name: None, client="", native=None)
    assert decide(request) is Priority.SHEDDABLE
    gates.reload(rule.format("path", "critical_plus"))
    assert decide(request) is Priority.CRITICAL_PLUS
    gates.reload(rule.format("task", "sheddable"))
    assert decide(request) is None, "a rule for others"
    gates.reload(OTHER)
    assert decide(request) is None
