"""A report page as a reader without scripts finds it, and runs to draw."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

from tidegate.demo.capacity import Level
from tidegate.demo.report import Essential, Reference, Report, Row

VOID = {"meta", "br", "path", "polygon"}  # the latter two close themselves


class Reader(HTMLParser):
    """Reads a page, and fails where an element is not closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.islands: dict[str, Any] = {}
        self.visible = ""
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.cells: set[str] = set()
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(self.elements[-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        tag, attributes = self._open[-1] if self._open else ("", {})
        if tag == "script" and attributes.get("type") == "application/json":
            self.islands[str(attributes["id"])] = json.loads(data)
        elif tag == "script":
            self.scripts.append(data)
        elif tag == "style":
            self.styles.append(data)
        else:
            self.visible += data
        if tag in ("td", "th"):
            self.cells.add(data)


def row(load: float, arm: str, good: int, late: int, shed: int, **others: Any) -> Row:
    return Row(
        load=load,
        arm=arm,
        offered=good + late + shed,
        good=good,
        late=late,
        shed=shed,
        error_rate=late / (good + late),
        goodput_ratio=good / 1000,
        shed_ms_p50=0.7 if shed else None,
        shed_ms_p99=4.2 if shed else None,
        p50_ms=others.get("p50_ms", 123.0),
        p99_ms=others.get("p99_ms", 456.0),
        essential=Essential(200, others.get("essential", 200)),
    )


def report(*more: Row, **changed: Any) -> Report:
    fields: dict[str, Any] = {
        "database": "sqlite",
        "seed": 7,
        "timeout": 1.0,
        "seconds": 6.0,
        "arrivals": "trace",
        "limit": 36,
        "workers": 2,
        "best_per_s": 108.5,
        "service_ms": 18.25,
        "curve": [Level(1, 54.0), Level(2, 108.5), Level(3, 106.0)],
        "generator_lag_ms_p99": 4.0,
        "reference": Reference(load=4.0, pairs=5, goodput_ratio=0.96),
        "rows": [
            row(0.5, "ungated", 300, 0, 0),
            row(0.5, "semaphore", 300, 0, 0),
            row(0.5, "tidegate", 300, 0, 0),
            row(4.0, "ungated", 110, 5000, 0, p50_ms=700.5, essential=3),
            row(4.0, "semaphore", 960, 0, 1240, essential=50),
            row(4.0, "tidegate", 970, 0, 1230),
            *more,
        ],
    }
    return Report(**{**fields, **changed})
