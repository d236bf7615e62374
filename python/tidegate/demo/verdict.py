"""What a run has to show, and the sentence that says whether it did. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from tidegate.demo.report import Active, Auto, Report, Row

# A generator that starts its requests later than this did not offer the load that it claims.
LARGEST_LAG_MS = 20.0

# Collapse and rescue are claimed from this load on, harmlessness up to that one.
_OVERLOAD = 4.0
_LIGHT = 0.5

# Of the reference. A PostgreSQL is many processes, and behind the gate these share the processors with its
# refusals and with the load generator, which the reference windows do without.
_GOODPUT = {"sqlite": 0.85, "postgres": 0.80}

# Of the limit that is given, in turns.
_AUTO_GOODPUT = 0.95

# Fewer at work at once would not show what contention in the database does.
_CONTENTION = 20

# One late among 473 admitted: below 1 % with 95 % confidence.
_PROOF_ADMITTED = 473
_PROOF_LATE = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing to show."""

    holds: bool
    found: str
    needed: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on a run."""

    valid: bool
    holds: bool
    sentence: str


def as_json(report: Report, verdict: Verdict) -> dict[str, object]:
    """The report and its judgement, under the names that other programs rely on."""
    fields = asdict(report)
    rows = fields.pop("rows")
    return {**fields, "valid": verdict.valid, "verdict": verdict.sentence, "loads": rows}


def judge(report: Report) -> Verdict:
    """Judge a run. One without a load that anything is claimed about holds, and its sentence says so."""
    lag = report.generator_lag_ms_p99
    if lag > LARGEST_LAG_MS:
        return Verdict(
            valid=False,
            holds=False,
            sentence=f"Invalid: the load generator started 1 % of its requests {lag:.0f} ms late or more "
            f"({LARGEST_LAG_MS:.0f} ms allowed), so the figures prove nothing; "
            "try again on a quieter machine.",
        )
    claims = list(_claims(report))
    failed = [claim for claim in claims if not claim.holds]
    if failed:
        reasons = "; ".join(f"{claim.found} (needed: {claim.needed})" for claim in failed)
        return Verdict(valid=True, holds=False, sentence=f"Does not hold: {reasons}.")
    if claims:
        return Verdict(
            valid=True, holds=True, sentence=f"Holds: {'; '.join(claim.found for claim in claims)}."
        )
    return Verdict(
        valid=True,
        holds=True,
        sentence=f"Nothing to judge: claims are made about {_OVERLOAD:g}x load and more, "
        f"and about {_LIGHT:g}x and less.",
    )


def _claims(report: Report) -> Iterator[Claim]:
    loads = [row.load for row in report.rows]
    if max(loads) >= _OVERLOAD:
        yield from _overload_claims(report, max(loads))
    for auto in report.auto:
        yield _finds_the_limit(auto)
        yield _essential_meanwhile(auto)
    if min(loads) <= _LIGHT:
        yield _harmless(report.row(min(loads), "tidegate"))


def _overload_claims(report: Report, load: float) -> Iterator[Claim]:
    tidegate = report.row(load, "tidegate")
    yield _collapse(report.row(load, "ungated"))
    if report.active_backends is not None:
        yield _contention(report.active_backends)
    yield _on_time(tidegate)
    yield _as_good_as_alone(report)
    yield _told_at_once(tidegate)
    yield _essential(tidegate, report.row(load, "semaphore"))


def _collapse(row: Row) -> Claim:
    return Claim(
        row.goodput_ratio <= 0.30 and row.error_rate is not None and row.error_rate >= 0.93,
        f"at {row.load:g}x load without a gate {_percent(row.error_rate)} of the requests were in vain "
        f"and good answers fell to {row.goodput_ratio:.2f} of the best",
        "93 % or more, and 0.30 or less: this machine did not collapse",
    )


def _contention(active: Active) -> Claim:
    return Claim(
        active.p50 >= _CONTENTION,
        f"{active.p50} of the database's backends were at work at once then, {active.max} at most",
        f"{_CONTENTION} or more",
    )


def _as_good_as_alone(report: Report) -> Claim:
    found, needed = report.reference.goodput_ratio, _GOODPUT[report.database]
    return Claim(
        found >= needed, f"good answers stayed at {found:.2f} of the reference", f"{needed:.2f} or more"
    )


def _on_time(row: Row) -> Claim:
    return Claim(
        row.late <= _PROOF_LATE and row.admitted >= _PROOF_ADMITTED,
        f"behind Tidegate {row.late} of {row.admitted} admitted came late",
        f"at most {_PROOF_LATE}, of {_PROOF_ADMITTED} or more",
    )


def _told_at_once(row: Row) -> Claim:
    needed = "5 ms or less, and 10 ms or less"
    if row.shed_ms_p50 is None or row.shed_ms_p99 is None:
        return Claim(False, "nobody was turned away", needed)
    return Claim(
        row.shed_ms_p50 <= 5.0 and row.shed_ms_p99 <= 10.0,
        f"half of those turned away knew within {row.shed_ms_p50:.1f} ms, "
        f"99 % within {row.shed_ms_p99:.1f} ms",
        needed,
    )


def _essential(tidegate: Row, semaphore: Row) -> Claim:
    ours, plain = tidegate.essential.success, semaphore.essential.success
    return Claim(
        ours is not None and ours >= 0.99 and plain is not None and plain <= 0.60,
        f"{_percent(ours)} of the essential requests were answered, with a plain semaphore {_percent(plain)}",
        "99 % or more, and far less with the semaphore",
    )


def _finds_the_limit(auto: Auto) -> Claim:
    return Claim(
        auto.goodput_ratio >= _AUTO_GOODPUT,
        f"at {auto.load:g}x load a limit that found itself ({auto.limit} in the end) gave "
        f"{auto.goodput_ratio:.2f} of the given one's good answers, in turns",
        f"{_AUTO_GOODPUT} or more",
    )


def _essential_meanwhile(auto: Auto) -> Claim:
    success = auto.essential.success
    return Claim(
        success is not None and success >= 0.99,
        f"{_percent(success)} of the essential requests were answered there",
        "99 % or more",
    )


def _harmless(row: Row) -> Claim:
    share = row.shed / row.offered if row.offered else 0.0
    return Claim(
        share < 0.01, f"at {row.load:g}x load Tidegate turned away {_percent(share)}", "less than 1 %"
    )


def _percent(share: float | None) -> str:
    """With one decimal, but neither 0 nor 100 unless it is exactly that."""
    if share is None:
        return "none"
    if share in (0.0, 1.0):
        return f"{share * 100:.0f} %"
    return f"{min(99.9, max(0.1, share * 100)):.1f} %"
