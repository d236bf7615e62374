"""What a run says, in one sentence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.capacity.analysis import Recommendation
from tidegate.capacity.baseline import Comparison
from tidegate.report.page import Tone

PROVEN = 0.01
"""The share of errors among admitted requests that a proof is to stay below."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence, and what kind of news it is."""

    tone: Tone
    sentence: str

    @property
    def holds(self) -> bool:
        """Whether it is good news."""
        return self.tone is Tone.HOLDS


def judge(
    found: Recommendation,
    *,
    notes: Sequence[str] = (),
    broken: str | None = None,
    interrupted: bool = False,
    comparison: Comparison | None = None,
) -> Verdict:
    """Judge a run.

    Args:
        found: What the analysis made of it.
        notes: Sentences about what limits the findings.
        broken: Why the target could not be tested to the end.
        interrupted: Somebody ended it.
        comparison: With an earlier run.
    """
    if broken is not None:
        return Verdict(Tone.INVALID, f"Cannot be tested: {broken}")
    if interrupted:
        return Verdict(Tone.INVALID, f"Interrupted: what is known so far: {found.verdict}")
    sentence = " ".join([found.verdict, *notes, *([comparison.sentence] if comparison else [])])
    if comparison is not None and comparison.fell:
        return Verdict(Tone.FAILS, f"Capacity fell: {sentence}")
    if found.limit is None:
        return Verdict(Tone.INVALID if notes else Tone.FAILS, sentence)
    unproven = found.error_upper is not None and found.error_upper >= PROVEN
    return Verdict(Tone.FAILS if unproven or found.accepted is False else Tone.HOLDS, sentence)
