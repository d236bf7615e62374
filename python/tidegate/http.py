"""The HTTP answer to a shed, as plain values: for any framework."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tidegate._errors import Shed

PROBLEM_TYPE = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
_TITLE = "Request cannot be satisfied due to temporary server capacity constraints"  # as registered


class ShedResponse(NamedTuple):
    """Status, headers and body of an answer."""

    status: int
    headers: dict[str, str]
    body: bytes


def shed_response(shed: Shed) -> ShedResponse:
    """503, with a Retry-After in whole seconds and a problem document (RFC 9457).

    The numbers of the gate stay inside: how full a service is, is not for its clients to know.
    """
    retry_after = shed.retry_after_header  # jittered anew at each reading: the body repeats this one
    problem = {
        "type": PROBLEM_TYPE,
        "title": _TITLE,
        "status": 503,
        "gate": shed.gate,
        "reason": shed.reason,
        "priority": shed.priority,
        "retry_after": int(retry_after),
    }
    headers = {"Content-Type": "application/problem+json", "Retry-After": retry_after}
    return ShedResponse(503, headers, json.dumps(problem).encode())
