"""Control gate that decides at random: a given rate of training clients, independent of their data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.errors import require
from fedreuse.methods.gates.gate import AgeLimit, gates, promote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort

__all__ = ["Random"]


@gates.register("random")
@dataclass(frozen=True)
class Random(AgeLimit):
    """Training with a given probability, independent of the client's data. Reused clients are not contacted.

    Args:
        max_age: A cached update of this age in rounds, or older, is not reused; at least 1.
        quota: Smallest share of the cohort that trains, in [0, 1]; missing clients are taken by the gate's ranking.
        probability: Probability of training, in [0, 1].

    Example: `method: {name: dg_fedreuse, gate: {name: random, probability: 0.3}}`.
    """

    probability: float = 0.3

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        require(0 <= self.probability <= 1, "gate.probability must be in [0, 1]", self.probability)

    def choose(
        self, scores: Mapping[int, float], ages: Mapping[int, int], certain: Mapping[int, str], cohort: Cohort
    ) -> dict[int, str]:
        """Draw once per doubtful client; the quota takes the smallest draws."""
        del scores
        draws = {client: float(cohort.rng_of("random gate", client).random()) for client in sorted(ages)}
        chosen = {client: "random" for client, draw in draws.items() if draw < self.probability}
        ranking = {client: -draw for client, draw in draws.items()}
        return promote(chosen, ranking, len(certain), self.quota, cohort)
