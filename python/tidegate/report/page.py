"""A whole report: one file that opens without a network, on a phone, in the dark and on paper.

Without scripts it still shows everything but the charts, and what these show is in the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from itertools import count

from tidegate.report.chart import Chart
from tidegate.report.markup import island, text
from tidegate.report.origin import Origin
from tidegate.report.table import Table

# Not a wish but an order to the browser: whatever gets into the file, nothing is loaded from anywhere.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)


class Tone(StrEnum):
    """What kind of news the verdict is."""

    HOLDS = "holds"
    FAILS = "fails"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Section:
    """Charts, and the tables with their figures."""

    title: str
    lead: str
    charts: Sequence[Chart]
    tables: Sequence[Table]


@dataclass(frozen=True, slots=True)
class Page:
    """A report. `figures` are all of it as data: they can be saved from the page as `file_name`.json."""

    title: str
    tone: Tone
    verdict: str
    lead: str
    sections: Sequence[Section]
    parameters: Sequence[tuple[str, str]]
    """Names and values of what was asked for and what followed from it."""
    origin: Origin
    figures: object
    file_name: str


def render(page: Page) -> str:
    """The file's text, all of it ASCII."""
    charts = [chart for section in page.sections for chart in section.charts]
    numbers = count()
    sections = "".join(_section(section, numbers) for section in page.sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(page.title)}: {text(page.tone.replace("fails", "does not hold"))}</title>
<style>
{_asset("uplot.min.css")}
{_asset("page.css")}
</style>
</head>
<body>
<header>
<h1>{text(page.title)}</h1>
<p class="verdict {page.tone}">{_verdict(page.verdict)}</p>
<p>{text(page.lead)}</p>
</header>
<main>
{sections}<section>
<h2>The run</h2>
{_facts([*page.parameters, *page.origin.facts])}
<p>To repeat it:</p>
<pre><code>{text(page.origin.command)}</code></pre>
<p class="save" hidden><a download="{text(page.file_name)}.json">All figures as JSON</a></p>
</section>
</main>
{island("figures", page.figures)}
{island("charts", [chart.data() for chart in charts])}
<script>
/*
{_asset("LICENSE-uplot.txt")}*/
{_asset("uplot.min.js")}
{_asset("charts.js")}
</script>
</body>
</html>
"""


def _section(section: Section, numbers: count[int]) -> str:
    charts = "".join(chart.html(next(numbers)) for chart in section.charts)
    tables = "".join(table.html() for table in section.tables)
    return (
        f"<section>\n<h2>{text(section.title)}</h2>\n<p>{text(section.lead)}</p>\n"
        f'<div class="charts">\n{charts}</div>\n<div class="tables">\n{tables}</div>\n</section>\n'
    )


def _verdict(sentence: str) -> str:
    """The sentence, with what comes before its first colon to be seen from afar."""
    head, colon, reasons = sentence.partition(":")
    return f"<strong>{text(head)}{colon}</strong>{text(reasons)}"


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    items = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in facts)
    return f"<dl>{items}</dl>"


def _asset(name: str) -> str:
    return files("tidegate.report").joinpath("assets", name).read_text(encoding="utf-8")
