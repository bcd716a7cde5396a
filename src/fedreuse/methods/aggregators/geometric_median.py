"""Geometric median, the point with the least sum of distances, by smoothed Weiszfeld steps (RFA, Pillutla et al. 2022).

z_0   = coordinate-wise median
b_i   = share_i / max(smoothing, |delta_i - z|)
z    <- sum of b_i delta_i / sum of b_i                  `steps` times
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, aggregators
from fedreuse.methods.aggregators.median import median_of
from fedreuse.methods.aggregators.rows import Rows, aggregate_rows, distance, row_sum

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema

__all__ = ["GeometricMedian"]


@aggregators.register("geometric_median")
@dataclass(frozen=True)
class GeometricMedian(Aggregator):
    """The point with the least sum of distances to the updates, weighted by examples (RFA).

    It tolerates attackers with less than half of the round's examples. The published iteration starts at the mean; here
    it starts at the coordinate-wise median, because one huge update would keep the mean far away for many steps.

    Args:
        steps: Number of Weiszfeld steps, at least 1.
        smoothing: Lower bound of the distances, above 0, in the unit of the weights.

    Example:
        >>> GeometricMedian(steps=4)
        GeometricMedian(steps=4, smoothing=1e-06)
    """

    steps: int = 8
    smoothing: float = 1e-6

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.steps >= 1, "geometric_median.steps must be at least 1", self.steps)
        require(self.smoothing > 0, "geometric_median.smoothing must be above 0", self.smoothing)

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the geometric medians of weights, running statistics and counters."""
        del cohort
        return aggregate_rows(self._rule, contributions, schema)

    def _rule(self, rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        centre = median_of(rows)
        counted = shares
        for _ in range(self.steps):
            pulls = shares / np.array([max(self.smoothing, distance(row, centre)) for row in rows])
            counted = pulls / np.sum(pulls)
            centre = row_sum(rows, counted)
        return centre, counted
