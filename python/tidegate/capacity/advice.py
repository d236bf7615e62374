"""What to do about what was seen. Pure: sentences for the ways in which a target cannot be tested."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.capacity.units import rate
from tidegate.simulate.units import duration

FAULTS = 0.01
"""The share of failures from which answers say more of faults than of load."""

_LEAST_S = 0.0005


def for_failure(kind: str) -> str:
    """What to do about requests that fail like this."""
    if kind == "connection refused":
        return "Nobody listens there: start the service, or check host and port."
    if kind in ("HTTP 401", "HTTP 403"):
        return "The credentials are missing or wrong: give them with --header 'Authorization: ...'."
    if kind in ("HTTP 404", "HTTP 405"):
        return "Check the path of the URL, and --method."
    if kind in ("HTTP 429", "HTTP 503"):
        return (
            "It turns requests away by itself: test what stands behind its limit, or lift that for the test."
        )
    if kind.startswith("HTTP 3"):
        return "Name the address that it points to, or say with --status that this is a good answer."
    if kind.startswith("HTTP 5"):
        return "Its log says why; mend that first."
    if kind.startswith("HTTP"):
        return "Check the request, or say with --status and --contains what a good answer is."
    if "password" in kind or "authentication" in kind:
        return "The credentials are wrong: check user and password in the DSN."
    if "ConnectError" in kind or "getaddrinfo" in kind or "Name or service" in kind:
        return "Check host and port, and that they can be reached from here."
    return "Mend that first: until one request alone is answered, there is no capacity to find."


def first_failed(kind: str) -> str:
    """The very first request came to nothing."""
    return f"The first request failed: {kind}. {for_failure(kind)}"


def first_late(timeout: float) -> str:
    """The very first request had no answer in time."""
    return (
        f"The first request, alone, had no answer within {duration(timeout)}. If it needs longer, give it "
        "more with --timeout; otherwise see what it waits for."
    )


def faults(phase: str, failures: Mapping[str, int], late: int, offered: int) -> str:
    """Some fail where load cannot be the reason."""
    seen = ", ".join(f"{kind}: {count}" for kind, count in list(failures.items())[:3])
    if late:
        seen = f"{seen}, too late: {late}" if seen else f"too late: {late}"
    most = next(iter(failures), "")
    return (
        f"{sum(failures.values()) + late} of {offered} requests failed {phase} ({seen}): it fails now and "
        "then without being overloaded, and so a limit cannot be told from its faults. "
        f"{for_failure(most) if most else 'Give it more time with --timeout, or see what these wait for.'}"
    )


def too_fast_to_tell(latency: float) -> str:
    """An answer takes no longer than the asking."""
    return (
        f"One request takes {duration(latency)}, about as long as this generator takes to send one: the "
        "figures would be the generator's. Test a larger piece of work, such as a batch of these."
    )


def faster_than_generator(per_s: float, held: float | None, lag: float) -> str:
    """The generator could not keep its schedule."""
    known = "" if held is None else f" It holds {rate(held)} at least."
    return (
        f"At {rate(per_s)} the load generator itself was late ({duration(lag)} for 1 in 100, twice), so "
        f"nothing can be said of the target there.{known} Run this on a machine of its own with less to do, "
        "or test a larger piece of work."
    )


def capped_in_flight(per_s: float, most: int) -> str:
    """More in flight than allowed, and it was not yet overloaded."""
    return (
        f"At {rate(per_s)} there were {most} in flight, the most that is allowed, before anything was wrong. "
        "Raise --max-in-flight, if the target may have more."
    )


def capped_rate(per_s: float) -> str:
    """A closed loop came to the rate that is allowed."""
    return (
        f"Kept full, it was sent {rate(per_s)}, the most that is allowed: the limit is one for that, and it "
        "may be able to do more. Raise --max-rate, if it may be sent more."
    )


def not_recovered(seconds: float, alone: float, failed: str | None) -> str:
    """After an overload one request alone is still slow, or fails."""
    if failed is not None:
        return (
            f"Left alone for {duration(seconds)} after an overload, one request alone still fails: {failed}. "
            "Restart it, and go on with --resume."
        )
    return (
        f"Left alone for {duration(seconds)} after an overload, it still does not answer one request about "
        f"as fast as before ({duration(alone)}): it may go on with work that nobody waits for. See that a "
        "request that is given up on is cancelled, restart it, and go on with --resume."
    )


def still_running(count: int, seconds: float) -> str:
    """Work that nobody waits for does not end."""
    return (
        f"{duration(seconds)} after the last request, {count} that were given up on still run: the target "
        "goes on with work that nobody waits for. Make it heed a timeout of its own, or a cancellation, and "
        "test again."
    )


def log_incomplete(why: str) -> str:
    """The journal could not be written to the end."""
    return f"The log is not complete, so --resume cannot go on from here: {why}."


def too_fast(latency: float, overhead: float) -> bool:
    """Whether a median of one alone is too short to measure here: asking for nothing takes `overhead`."""
    return latency < max(_LEAST_S, 3 * overhead)
