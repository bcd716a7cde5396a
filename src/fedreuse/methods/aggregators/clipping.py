"""Norm clipping: the weighted mean of updates clipped to a norm.

D = sum of share_i min(1, bound / |delta_i|) delta_i;  bound: fixed, or factor x median of |delta_i| in this round
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, aggregators
from fedreuse.methods.aggregators.rows import Rows, aggregate_rows, distance, row_sum

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema

__all__ = ["Clipping", "shrinkage"]


@aggregators.register("clipping")
@dataclass(frozen=True)
class Clipping(Aggregator):
    """Mean of the updates, weighted by examples, each clipped to a bound on its norm.

    It limits the influence of one client; it does not detect attackers. Running statistics and counters have their own
    norms and bounds, which follow their medians.

    Args:
        bound: Largest norm of the weights' update that is not clipped, above 0; null takes the median of the round's
            norms times `factor`, which follows the updates as they shrink; fewer than half of the clients cannot move
            it beyond the norms of the others.
        factor: Multiple of the median, above 0.

    Example:
        >>> Clipping(factor=1.5)
        Clipping(bound=None, factor=1.5)
    """

    bound: float | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.bound is None or self.bound > 0, "clipping.bound must be above 0, or null", self.bound)
        require(self.factor > 0, "clipping.factor must be above 0", self.factor)

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the weighted mean of the clipped updates."""
        del cohort
        return aggregate_rows(self._rule, contributions, schema, _verdict, of_buffers=self._adaptive)

    def _rule(self, rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._adaptive(rows, shares) if self.bound is None else _clipped(rows, shares, _norms(rows), self.bound)

    def _adaptive(self, rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        norms = _norms(rows)  # the median of norms, which a minority of attackers cannot move far
        return _clipped(rows, shares, norms, self.factor * float(np.median(norms)))


def _norms(rows: Rows) -> np.ndarray:
    return np.array([distance(row) for row in rows])


def _clipped(rows: Rows, shares: np.ndarray, norms: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray]:
    counted = shares * shrinkage(norms, bound)
    return row_sum(rows, counted), counted


def shrinkage(norms: np.ndarray, bound: float) -> np.ndarray:
    """Return min(1, bound / norm) for each norm; 1 for a norm of zero."""
    return np.array([1.0 if norm <= bound else bound / norm for norm in norms])


def _verdict(share: float, counted: float) -> str:
    return "clipped" if counted < share else ""
