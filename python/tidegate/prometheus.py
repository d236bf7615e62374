"""Metrics for Prometheus, right also where several processes serve: gunicorn, uvicorn with workers.

    from tidegate import prometheus

    app.mount("/metrics", prometheus.asgi_app)

With the environment variable ``TIDEGATE_METRICS_DIR`` set, each gate of each process counts in a file of its
own in that directory, and whichever process is asked adds all of them up. The counts of a process that ended
stay, also if it was killed; its limit and what it had in flight go. Without the variable the gates of this
process are shown.

``prometheus_client`` is not needed; where it is used anyway, ``collector`` adds the gates to its registry.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tidegate._native import GateSum, sums_here, sums_in

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector

    from tidegate._native import Gate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Directory = str | os.PathLike[str]


def exposition(*gates: Gate, directory: Directory | None = None, openmetrics: bool = False) -> str:
    """All metrics as text.

    Gates of the same name are added up. The number of lines does not depend on the requests.

    Args:
        gates: The gates to show; none means all. With a directory they are shown by name, over all processes.
        directory: Where gates are published: what ``TIDEGATE_METRICS_DIR`` says, unless given. Needs the
            right to write there, since the files of ended processes are folded into one.
        openmetrics: Whether to write OpenMetrics 1.0 instead of Prometheus's text format 0.0.4.

    Raises:
        OSError: The directory cannot be read, or another process has kept it locked for a second.
    """
    lines = [line for family in _families(gates, directory) for line in _text(family, openmetrics)]
    if openmetrics:
        lines.append("# EOF")
    return "\n".join(lines) + "\n"


def wsgi_app(
    environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """A WSGI application that answers every request with ``exposition()``."""
    headers, body = _answer(environ.get("HTTP_ACCEPT", ""))
    start_response("200 OK", headers)
    return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]


async def asgi_app(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],  # noqa: ARG001 - requests have nothing to say
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """An ASGI application that answers every request with ``exposition()``.

    Raises:
        NotImplementedError: The connection is not HTTP.
    """
    if scope["type"] != "http":
        raise NotImplementedError(f"metrics are served by HTTP, not by {scope['type']}")
    accept = b",".join(value for name, value in scope["headers"] if name == b"accept")
    headers, body = _answer(accept.decode("latin-1"))
    raw_headers = [(name.lower().encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": 200, "headers": raw_headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def collector(*gates: Gate, directory: Directory | None = None) -> Collector:
    """A collector for a registry of ``prometheus_client``, which must be installed.

    Its multiprocess mode leaves out all collectors without a word: there, serve ``wsgi_app`` or ``asgi_app``.

    Args:
        gates: As for ``exposition``.
        directory: As for ``exposition``.
    """
    return cast("Collector", _Collector(gates, directory))


class _Collector:
    """What a registry asks of a collector, without its base class: that may not be installed."""

    def __init__(self, gates: tuple[Gate, ...], directory: Directory | None) -> None:
        self._gates = gates
        self._directory = directory

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.metrics_core import Metric

        for family in _families(self._gates, self._directory):
            metric = Metric(family.name, family.help, family.kind)
            for sample in family.samples:
                metric.add_sample(family.name + sample.suffix, dict(sample.labels), sample.value)
            yield metric


# --- what is shown ---------------------------------------------------------------------------------


_Labels = tuple[tuple[str, str], ...]


class _Sample(NamedTuple):
    suffix: str
    labels: _Labels
    value: float


class _Family(NamedTuple):
    name: str  # as in OpenMetrics: without the suffix of its samples
    kind: str
    help: str
    samples: list[_Sample]


def _families(gates: tuple[Gate, ...], directory: Directory | None) -> list[_Family]:
    directory = directory or os.environ.get("TIDEGATE_METRICS_DIR")
    if not directory:
        return _families_of(sums_here(list(dict.fromkeys(gates)) if gates else None))
    sums, unreadable, unpublished = sums_in(directory)
    names = {gate.name for gate in gates} or {each.gate for each in sums}
    return [
        *_families_of([each for each in sums if each.gate in names]),
        _gauge("unreadable_files", "Files of gates that were not understood.", [((), unreadable)]),
        _gauge("unpublished_gates", "Gates of the process that answers, in no file.", [((), unpublished)]),
    ]


def _families_of(sums: list[GateSum]) -> list[_Family]:
    requests = _Family(
        "tidegate_requests",
        "counter",
        "Attempts, each counted once: admitted, shed for a reason, or let in by dry run (would_shed).",
        [
            _total(each, n, priority=priority, outcome=outcome, reason=reason)
            for each in sums
            for priority, outcome, reason, n in each.requests
        ],
    )
    released = _Family(
        "tidegate_released",
        "counter",
        "What was admitted and has left, by what its work came to.",
        [_total(each, n, outcome=outcome) for each in sums for outcome, n in each.released],
    )
    limit_changes = _Family(
        "tidegate_limit_changes",
        "counter",
        "How often the limit was changed, by cause.",
        [_total(each, n, cause=cause) for each in sums for cause, n in each.limit_changes],
    )
    durations = _Family(
        "tidegate_permit_duration_seconds",
        "histogram",
        "For how long permits were held, by what their work came to.",
        [sample for each in sums for sample in _durations(each)],
    )
    families = [
        requests,
        released,
        _by_gate("in_flight", "Weight in flight, over all living processes.", sums, _in_flight),
        _by_gate("limit", "Sum of the limits of all living processes.", sums, _limit),
        _by_gate("pressure", "Highest pressure level of the living processes.", sums, _pressure),
        _by_gate("overloaded", "Living processes whose signals mean overload.", sums, _overloaded),
        _by_gate("processes", "Living processes that have the gate.", sums, _processes),
        durations,
        limit_changes,
    ]
    return [family for family in families if family.samples]


def _total(gate: GateSum, value: int, **labels: str) -> _Sample:
    return _Sample("_total", (("gate", gate.gate), *labels.items()), value)


def _by_gate(name: str, text: str, sums: list[GateSum], read: Callable[[GateSum], float | None]) -> _Family:
    return _gauge(name, text, [((("gate", each.gate),), read(each)) for each in sums])


def _gauge(name: str, text: str, values: Iterable[tuple[_Labels, float | None]]) -> _Family:
    samples = [_Sample("", labels, value) for labels, value in values if value is not None]
    return _Family(f"tidegate_{name}", "gauge", text, samples)


def _in_flight(gate: GateSum) -> int | None:
    return gate.in_flight


def _limit(gate: GateSum) -> int | None:
    return gate.limit


def _pressure(gate: GateSum) -> float | None:
    return gate.pressure


def _overloaded(gate: GateSum) -> int | None:
    return gate.overloaded


def _processes(gate: GateSum) -> int | None:
    return gate.processes


def _durations(gate: GateSum) -> Iterator[_Sample]:
    for outcome, buckets, seconds in gate.durations:
        labels = (("gate", gate.gate), ("outcome", outcome))
        for bound, count in buckets:
            yield _Sample("_bucket", (*labels, ("le", _number(bound))), count)
        yield _Sample("_count", labels, buckets[-1][1])
        yield _Sample("_sum", labels, seconds)


# --- how it is written -----------------------------------------------------------------------------


def _text(family: _Family, openmetrics: bool) -> Iterator[str]:
    # The older format names a counter as its samples are named.
    suffix = "_total" if family.kind == "counter" and not openmetrics else ""
    yield f"# HELP {family.name}{suffix} {family.help}"
    yield f"# TYPE {family.name}{suffix} {family.kind}"
    for sample in family.samples:
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
        braced = f"{{{labels}}}" if labels else ""
        yield f"{family.name}{sample.suffix}{braced} {_number(sample.value)}"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return "+Inf" if value == float("inf") else repr(value)


def _answer(accept: str) -> tuple[list[tuple[str, str]], bytes]:
    """Headers and body, in the format that was asked for."""
    openmetrics = "application/openmetrics-text" in accept
    body = exposition(openmetrics=openmetrics).encode()
    content_type = OPENMETRICS_CONTENT_TYPE if openmetrics else CONTENT_TYPE
    return [("Content-Type", content_type), ("Content-Length", str(len(body)))], body
