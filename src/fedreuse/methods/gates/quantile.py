"""Gate by rank: the clients with the highest scores of the round train, whatever the level of the scores."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from fedreuse.core.errors import require
from fedreuse.core.local_trainer import BatchPlan
from fedreuse.methods.gates.gate import AgeLimit, gates, promote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort

__all__ = ["Quantile"]


@gates.register("quantile")
@dataclass(frozen=True)
class Quantile(AgeLimit):
    """Training if the score is among the highest `fraction` of this round's scores.

    Args:
        max_age: A cached update of this age in rounds, or older, is not reused; at least 1.
        quota: Smallest share of the cohort that trains, in [0, 1]; missing clients are taken by the gate's ranking.
        fraction: Share of the scored clients that trains, in [0, 1].
        batches: Batches of the client's training examples in one gradient, at least 1.
        batch: Examples in a batch, at least 2.
        deterministic: Take the same batches in every round, in evaluation mode and without augmentation.

    Example: `method: {name: dg_fedreuse, gate: {name: quantile, fraction: 0.3}}`.
    """

    fraction: float = 0.5
    batches: int = 5
    batch: int = 64
    deterministic: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        require(0 <= self.fraction <= 1, "gate.fraction must be in [0, 1]", self.fraction)
        require(self.batches >= 1, "gate.batches must be at least 1", self.batches)
        require(self.batch >= 2, "gate.batch must be at least 2", self.batch)

    @property
    def plan(self) -> BatchPlan | None:
        """Batches of the gradient by which every doubtful client is scored."""
        return BatchPlan(self.batches, self.batch, self.deterministic)

    def choose(
        self, scores: Mapping[int, float], ages: Mapping[int, int], certain: Mapping[int, str], cohort: Cohort
    ) -> dict[int, str]:
        """Choose the highest scores, then fill the quota by decreasing score; ties go to the smaller client id."""
        del ages
        ranked = sorted(scores, key=lambda client: (-scores[client], client))
        count = ceil(self.fraction * len(ranked) - 1e-9)
        return promote(dict.fromkeys(ranked[:count], "score"), scores, len(certain), self.quota, cohort)
