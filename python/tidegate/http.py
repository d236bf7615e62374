"""The HTTP answer to a shed, as plain values: for any framework."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from tidegate._errors import ConfigError

if TYPE_CHECKING:
    from tidegate._errors import Shed

_PROBLEMS = {
    # Types and titles as registered with IANA.
    503: (
        "temporary-reduced-capacity",
        "Request cannot be satisfied due to temporary server capacity constraints",
    ),
    429: ("quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded"),
}


class ShedResponse(NamedTuple):
    """Status, headers and body of an answer."""

    status: int
    headers: dict[str, str]
    body: bytes


def check_status(status: int) -> None:
    """Raise a ConfigError for a status that is no answer to a shed."""
    if status not in _PROBLEMS:
        raise ConfigError(f"status must be 503 or 429, got {status!r}")


def shed_response(shed: Shed, status: int = 503) -> ShedResponse:
    """An answer with a Retry-After in whole seconds and a problem document (RFC 9457).

    The numbers of the gate stay inside: how full a service is, is not for its clients to know.

    Args:
        shed: What happened.
        status: 503 where the service lacks capacity, 429 where a client used up its share.

    Raises:
        ConfigError: Another status.
    """
    check_status(status)
    problem_type, title = _PROBLEMS[status]
    retry_after = shed.retry_after_header  # jittered anew at each reading: the body repeats this one
    problem = {
        "type": f"https://iana.org/assignments/http-problem-types#{problem_type}",
        "title": title,
        "status": status,
        "gate": shed.gate,
        "reason": shed.reason,
        "priority": shed.priority,
        "retry_after": int(retry_after),
    }
    headers = {"Content-Type": "application/problem+json", "Retry-After": retry_after}
    return ShedResponse(status, headers, json.dumps(problem).encode())
