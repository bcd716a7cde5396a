"""Control gate that decides by age only, without any score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.methods.gates.gate import AgeLimit, gates, promote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort

__all__ = ["AgeOnly"]


@gates.register("age_only")
@dataclass(frozen=True)
class AgeOnly(AgeLimit):
    """Reuse of every cache younger than `max_age`; the quota takes the oldest. Reused clients are not contacted.

    Args:
        max_age: A cached update of this age in rounds, or older, is not reused; at least 1.
        quota: Smallest share of the cohort that trains, in [0, 1]; missing clients are taken by the gate's ranking.

    Example: `method: {name: dg_fedreuse, gate: {name: age_only, max_age: 4}}`.
    """

    def choose(
        self, scores: Mapping[int, float], ages: Mapping[int, int], certain: Mapping[int, str], cohort: Cohort
    ) -> dict[int, str]:
        """Choose only the clients missing from the quota, oldest first."""
        del scores
        return promote({}, ages, len(certain), self.quota, cohort)
