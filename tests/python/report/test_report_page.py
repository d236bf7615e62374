"""The parts that every report shares."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from reportkit import Reader
from tidegate.report import words
from tidegate.report.chart import INKS, Chart, Line, Mark, shape
from tidegate.report.markup import island, text
from tidegate.report.origin import Origin
from tidegate.report.page import Page, Section, Tone, render
from tidegate.report.table import Group, Table

ASSETS = Path(str(files("tidegate.report"))) / "assets"
EVIL = """</script><script>alert("1")</script><!--<script> & ' \u2028 \u00e9"""


def page(word: str = "word", figures: object = None) -> Page:
    """A page with `word` wherever there is text."""
    chart = Chart(
        word,
        word,
        [1.0, 2.0],
        [Line(word, [1.0, None], ink=0)],
        x_unit=word,
        y_unit=word,
        marks=[Mark(3, word)],
    )
    table = Table(word, [word, word], [Group([[word, word]], heading=word)], note=word)
    return Page(
        title=word,
        tone=Tone.HOLDS,
        verdict=f"{word}: {word}.",
        lead=word,
        sections=[Section(word, word, [chart], [table])],
        parameters=[(word, word)],
        origin=Origin(word, [(word, word)]),
        figures=figures,
        file_name=word,
    )


def test_what_people_wrote_stays_text() -> None:
    plain, evil = Reader(render(page())), Reader(render(page(EVIL, figures={"key": EVIL})))
    assert [tag for tag, _ in evil.elements] == [tag for tag, _ in plain.elements]
    assert [sorted(attributes) for _, attributes in evil.elements] == [
        sorted(attributes) for _, attributes in plain.elements
    ]
    assert evil.visible.count(EVIL) == plain.visible.count("word")
    assert evil.islands["figures"] == {"key": EVIL}
    assert evil.islands["charts"][0]["marks"][0]["name"] == EVIL


def test_the_file_is_ascii_and_says_so_little_that_any_encoding_will_do() -> None:
    assert render(page(EVIL)).isascii()
    assert text("\udcff\u00e9<") == "&#56575;&#233;&lt;"


def test_numbers_that_json_does_not_have_do_not_break_the_page() -> None:
    found = Reader(island("x", {"a": [float("inf"), float("nan"), 1.5, 2, None, True, "inf"]})).islands["x"]
    assert found == {"a": [None, None, 1.5, 2, None, True, "inf"]}


def test_nothing_is_loaded_from_anywhere() -> None:
    html = render(page())
    reader = Reader(html)
    for tag, attributes in reader.elements:
        assert not {"src", "href", "srcset", "action", "data", "background", "poster"} & set(attributes), tag
        assert not any((value or "").startswith(("http:", "https:", "//")) for value in attributes.values())
        assert tag not in {"link", "base", "iframe", "object", "embed", "img"}
    for script in reader.scripts:
        assert not re.search(
            r"\bfetch\b|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import(Scripts)?\s*\(|\bimport\s",
            script,
        )
    for style in reader.styles:
        assert "@import" not in style and "url(" not in style
    # The one address is a mention, in the head of uPlot's own comment.
    assert set(re.findall(r"\w+://[\w./-]+", html)) == {"https://github.com/leeoniya/uPlot"}


def test_the_browser_is_told_to_load_nothing_before_it_reads_anything() -> None:
    reader = Reader(render(page()))
    first = [attributes for tag, attributes in reader.elements if tag in ("meta", "style", "script")][:2]
    assert first[0] == {"charset": "utf-8"}
    assert first[1]["http-equiv"] == "Content-Security-Policy"
    policy = dict(part.split(maxsplit=1) for part in str(first[1]["content"]).split("; "))
    assert policy["default-src"] == "'none'"
    assert set(policy.values()) == {"'none'", "'unsafe-inline'"}


def test_without_scripts_there_is_everything_but_the_charts() -> None:
    reader = Reader(render(page()))
    assert "word: word." in reader.visible
    assert reader.cells == {"word"}
    assert [attributes.get("hidden", "shown") for attributes in reader.all("p") if "class" in attributes] == [
        "shown",  # the verdict
        "shown",  # the table's note
        None,  # saving the figures, which takes a script
    ]
    (style,) = reader.styles
    assert ".chart { min-width: 0; margin: 0; display: none; }" in style


def test_a_verdict_without_reasons_is_all_head() -> None:
    assert "<strong>Well &amp; good.</strong></p>" in render(
        Page("t", Tone.INVALID, "Well & good.", "", [], [], Origin("", []), None, "t")
    )


def test_it_fits_a_phone_the_dark_and_paper() -> None:
    reader = Reader(render(page()))
    metas = {attributes.get("name"): attributes.get("content") for attributes in reader.all("meta")}
    assert metas["viewport"] == "width=device-width, initial-scale=1"
    assert metas["color-scheme"] == "light dark"
    (style,) = reader.styles
    assert "@media (prefers-color-scheme: dark)" in style
    assert "@media print" in style


def test_each_chart_finds_its_data() -> None:
    charts = [Chart(f"chart {n}", "x", [1.0], [Line("line", [float(n)], ink=n)]) for n in range(3)]
    sections = [Section("a", "", charts[:1], []), Section("b", "", charts[1:], [])]
    reader = Reader(render(Page("t", Tone.FAILS, "v", "", sections, [], Origin("", []), None, "t")))
    boxes = [attributes for attributes in reader.all("div") if "data-chart" in attributes]
    assert [box["data-chart"] for box in boxes] == ["0", "1", "2"]
    assert [chart["lines"][0]["values"] for chart in reader.islands["charts"]] == [[0.0], [1.0], [2.0]]
    assert all(f"chart {n}" in str(boxes[n]["aria-label"]) and boxes[n]["role"] == "img" for n in range(3))


def test_the_y_axis_has_room_for_all_values_and_marks() -> None:
    def top(*values: float | None, **others: Any) -> object:
        return Chart("", "", [1.0], [Line("", [v], 0) for v in values], **others).data()["top"]

    assert top(10.0, None, 2.0) == pytest.approx(11.2)
    assert top(10.0, marks=[Mark(20.0, "")]) == pytest.approx(22.4)
    assert top(10.0, top=105.0) == 105.0
    assert top(0.0) == top(None) == top() == 1.0


def test_a_legend_says_what_the_chart_says() -> None:
    chart = Chart(
        "", "", [1.0, 2.0], [Line("a", [1.0, None], 0), Line("b", [3.0, 99.97], 1)], say=words.percent
    )
    reader = Reader(chart.html(0))
    assert "a -b 99.9 %" in reader.visible and "at 2" in reader.visible
    assert [line["said"] for line in chart.data()["lines"]] == [["1.0 %", "-"], ["3.0 %", "99.9 %"]]


def test_inks_differ_in_colour_on_either_paper_and_in_shape() -> None:
    assert len({tuple(shape(ink)) for ink in range(INKS)}) == INKS
    style = (ASSETS / "page.css").read_text()
    colours = re.findall(r"--ink-(\d): (#\w+)", style)
    assert [int(ink) for ink, _ in colours] == [*range(INKS), *range(INKS)]
    assert len({colour for _, colour in colours}) == 2 * INKS


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((None, "-"), (0.0, "0.00"), (0.704, "0.70"), (9.99, "9.99"), (9.996, "10.0"), (56.66, "56.7")),
        *((99.94, "99.9"), (99.96, "100"), (1234.4, "1234"), (-3.0, "-3.00")),
    ],
)
def test_numbers(value: float | None, said: str) -> None:
    assert words.number(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((None, "-"), (0.0, "0 %"), (0.01, "0.1 %"), (50.0, "50.0 %"), (99.99, "99.9 %"), (100.0, "100 %")),
        (104.26, "104.3 %"),
    ],
)
def test_percentages_are_only_all_or_nothing_when_they_are(value: float | None, said: str) -> None:
    assert words.percent(value) == said


def test_uplot_is_what_its_licence_file_says_and_the_page_carries_the_licence() -> None:
    licence = (ASSETS / "LICENSE-uplot.txt").read_text()
    digests = re.findall(r"^sha256 (\w{64})  (\S+)$", licence, re.MULTILINE)
    assert {name for _, name in digests} == {"uplot.min.js", "uplot.min.css"}
    for digest, name in digests:
        assert hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == digest
    (version,) = re.findall(r"^uPlot (\d+\.\d+\.\d+), from", licence)
    assert f"(v{version})" in (ASSETS / "uplot.min.js").read_text()[:100]
    assert "Permission is hereby granted, free of charge" in licence
    assert licence in render(page())
