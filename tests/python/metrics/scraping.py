"""Reading an exposition as a scraper does, with the parsers of prometheus_client."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def families(text: str) -> list[Metric]:
    openmetrics = text.endswith("# EOF\n")
    return list((parse_openmetrics if openmetrics else parse_text)(text))


class Scrape:
    """Values by name and labels; each series once."""

    def __init__(self, text: str) -> None:
        self.series: Series = {}
        for family in families(text):
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in self.series, f"{key} is there twice"
                self.series[key] = sample.value

    def value(self, name: str, **labels: str) -> float | None:
        return self.series.get((f"tidegate_{name}", frozenset(labels.items())))

    def total(self, name: str, **labels: str) -> float:
        """The sum of all series of that name that have these labels."""
        return sum(
            value
            for (series, having), value in self.series.items()
            if series == f"tidegate_{name}" and labels.items() <= dict(having).items()
        )
