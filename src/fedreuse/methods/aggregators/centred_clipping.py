"""Centred clipping: a mean of updates around a centre, with clipped distances (Karimireddy, He, Jaggi, ICML 2021).

v_0   = coordinate-wise median
v    <- v + sum of share_i min(1, bound / |delta_i - v|) (delta_i - v)       `steps` times
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, aggregators
from fedreuse.methods.aggregators.clipping import shrinkage
from fedreuse.methods.aggregators.median import median_of
from fedreuse.methods.aggregators.rows import Rows, aggregate_rows, distance, row_sum

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema

__all__ = ["CentredClipping"]


@aggregators.register("centred_clipping")
@dataclass(frozen=True)
class CentredClipping(Aggregator):
    """Mean of the updates around a centre, each clipped to a distance from it.

    The published centre is the direction of the previous round; aggregators have no state here, so the centre is the
    coordinate-wise median of the round.

    Args:
        bound: Largest distance from the centre that counts in full, above 0, in the unit of the weights; null takes the
            median of the round's distances. Running statistics and counters always take their median.
        steps: Number of updates of the centre, at least 1.

    Example:
        >>> CentredClipping(bound=0.5)
        CentredClipping(bound=0.5, steps=3)
    """

    bound: float | None = None
    steps: int = 3

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.bound is None or self.bound > 0, "centred_clipping.bound must be above 0, or null", self.bound)
        require(self.steps >= 1, "centred_clipping.steps must be at least 1", self.steps)

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the centre after the last step."""
        del cohort
        return aggregate_rows(
            lambda rows, shares: self._move(rows, shares, self.bound),
            contributions,
            schema,
            of_buffers=lambda rows, shares: self._move(rows, shares, None),
        )

    def _move(self, rows: Rows, shares: np.ndarray, bound: float | None) -> tuple[np.ndarray, np.ndarray]:
        centre, counted = median_of(rows), shares
        for _ in range(self.steps):
            distances = np.array([distance(row, centre) for row in rows])
            counted = shares * shrinkage(distances, float(np.median(distances)) if bound is None else bound)
            centre = row_sum(rows, counted) + (1 - np.sum(counted)) * centre
        return centre, counted
