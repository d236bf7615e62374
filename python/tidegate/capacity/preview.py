"""What a run is going to do, said before it does anything. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.capacity.analysis import Plan, Search
from tidegate.capacity.conductor import Load
from tidegate.capacity.units import rate
from tidegate.simulate.units import duration

_TIMEOUTS = 4
_READS = ("select", "with", "values", "explain", "show", "table")


def preview(described: Mapping[str, str], plan: Plan, load: Load) -> str:
    """The text: what, how much, how long, and when it stops."""
    return "\n".join(_lines(described, plan, load))


def _lines(described: Mapping[str, str], plan: Plan, load: Load) -> Iterator[str]:
    yield "This sends real load:"
    yield f"  to        {_what(described)}"
    steps, seconds = Search(plan).remaining()
    yield f"  first     one request alone, then one at a time for {duration(plan_seconds(plan.cell, plan))}"
    yield f"  ramp      {_ramp(plan)}, each for {duration(plan_seconds(plan.stage, plan))}, {_arrivals(load)}"
    yield (
        "            stopped before the first timeout where a collapse can be foreseen, with a pause after "
        "it until the target is well again"
    )
    yield f"  sweep     behind a gate, from 1 to at most {plan.max_limit} in flight"
    if plan.prove:
        yield f"  proof     {plan.overload:g} times as much as broke it, behind the recommended gate"
    if plan.before:
        yield "            and the same without the gate, stopped as the ramp is"
    if plan.accept is not None:
        yield f"  accept    {rate(plan.accept)} behind the gate"
    most = "" if plan.max_rate is None else f"{rate(plan.max_rate)} without a gate, and never more than "
    yield f"  at most   {most}{load.most_in_flight} in flight; an answer may take {duration(plan.timeout)}"
    yield f"  takes     {duration(seconds)} at least, in {steps} steps or more"
    yield "Ctrl-C ends it at any moment, with a report of what is known by then."
    if _writes(described):
        yield "The statement may change data: it is run as often as load is sent."


def _what(described: Mapping[str, str]) -> str:
    match described["kind"]:
        case "url":
            return f"{described['method']} {described['url']}"
        case "function":
            return f"the function {described['function']}, in a process of its own"
        case _:
            return f"{described['database']}: {described['statement']}"


def _ramp(plan: Plan) -> str:
    if plan.rates:
        return f"{', '.join(rate(one) for one in plan.rates)} in turn"
    if plan.start_rate is not None:
        return f"from {rate(plan.start_rate)} up until it breaks"
    return "from twice what one at a time comes to up until it breaks"


def _arrivals(load: Load) -> str:
    return {
        "even": "at even distances",
        "trace": "in the pattern of the trace",
    }.get(load.arrivals, "at random moments (Poisson)")


def plan_seconds(value: float | None, plan: Plan) -> float:
    """A length that is four timeouts unless it is given."""
    return _TIMEOUTS * plan.timeout if value is None else value


def _writes(described: Mapping[str, str]) -> bool:
    statement = described.get("statement")
    return statement is not None and not statement.lower().startswith(_READS)
