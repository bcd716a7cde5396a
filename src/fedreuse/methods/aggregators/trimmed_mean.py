"""Coordinate-wise trimmed mean: the extremes of each coordinate are cut off (Yin et al., ICML 2018).

k = floor(bad n);  D_j = mean of the n - 2k values of coordinate j that are left without the k smallest and k largest
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.core.errors import require
from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, aggregators
from fedreuse.methods.aggregators.rows import Rows, aggregate_rows, blocks_of, num_bad

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema

__all__ = ["TrimmedMean"]


@aggregators.register("trimmed_mean")
@dataclass(frozen=True)
class TrimmedMean(Aggregator):
    """Mean of each coordinate without its smallest and largest values; every client counts the same.

    Codecs that drop coordinates are refused.

    Args:
        bad: Share of the round's contributions that is cut off at each end, in [0, 0.5): as many as may be Byzantine.
            The number is rounded down, so 0.2 cuts nothing from fewer than five.

    Example:
        >>> TrimmedMean(bad=0.1)
        TrimmedMean(bad=0.1)
    """

    needs_every_coordinate: ClassVar[bool] = True

    bad: float = 0.2

    def __post_init__(self) -> None:
        """Check the range."""
        require(0 <= self.bad < 0.5, "trimmed_mean.bad must be in [0, 0.5)", self.bad)

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the trimmed means of weights, running statistics and counters."""
        del cohort
        return aggregate_rows(self._rule, contributions, schema)

    def _rule(self, rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cut = num_bad(self.bad, len(rows))
        made = np.empty(len(rows[0]))
        for part, block in blocks_of(rows):
            made[part] = np.mean(np.sort(block, axis=0)[cut : len(rows) - cut], axis=0)
        return made, np.full(len(shares), 1 / len(shares))
