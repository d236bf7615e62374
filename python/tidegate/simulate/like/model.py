"""A service model for a demo's database, fitted to the curve of its throughput and to nothing else.

The law is Gunther's Universal Scalability Law (`src/capacity/usl.rs`), up to as many at a time as there are
`processors`: whoever is beyond them takes turns with the others, which costs nothing, so throughput stays
where it is. Without that end the law, fitted to a few at a time, would say of forty whatever the noise of its
last point says: kappa counts pairs, and of forty there are a hundred times as many as of four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tidegate._errors import ConfigError
from tidegate._native import fit_usl
from tidegate.demo.capacity import Level


@dataclass(frozen=True, slots=True)
class Model:
    """A database."""

    lambda_: float
    """Answers a second of one at a time."""
    sigma: float
    """The share of the work that cannot be done at the same time."""
    kappa: float
    """What each pair costs."""
    processors: int
    """How many are at work at a time, at most."""

    @classmethod
    def fit(cls, curve: Sequence[Level]) -> Self:
        """The model closest to a curve of two concurrencies or more, in proportion to its throughputs.

        Raises:
            ConfigError: No model of this kind is near it.
        """
        fits: list[Self] = []
        refused: ConfigError | None = None
        for level in curve[1:]:
            try:
                fits.append(cls._up_to(level.workers, curve))
            except ConfigError as error:
                refused = error
        if refused is not None and not fits:
            raise refused
        return min(fits, key=lambda fit: fit.distance(curve))

    @classmethod
    def _up_to(cls, processors: int, curve: Sequence[Level]) -> Self:
        # Every level was measured for the same time, so it is known by its count of answers, and the time of
        # one has a variance in proportion to its square over that count.
        points = [
            (at := min(level.workers, processors), level.per_s, level.per_s * (level.per_s / at) ** 2)
            for level in curve
        ]
        law = fit_usl(points, kappa=len({at for at, _, _ in points}) > 2)
        return cls(law.lambda_, law.sigma, law.kappa, processors)

    def per_s(self, workers: int) -> float:
        """Answers a second of so many at a time."""
        at = min(workers, self.processors)
        return self.lambda_ * at / (1 + self.sigma * (at - 1) + self.kappa * at * (at - 1))

    def distance(self, curve: Sequence[Level]) -> float:
        """How far off a curve is."""
        return sum(level.per_s * (self.per_s(level.workers) / level.per_s - 1) ** 2 for level in curve)

    def worst(self, curve: Sequence[Level]) -> tuple[Level, float]:
        """Where it is farthest off a curve, and what it says there."""
        level = max(curve, key=lambda level: abs(self.per_s(level.workers) / level.per_s - 1))
        return level, self.per_s(level.workers)
