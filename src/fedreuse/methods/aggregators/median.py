"""Coordinate-wise median: each coordinate is the median of that coordinate over the clients (Yin et al., ICML 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, aggregators
from fedreuse.methods.aggregators.rows import Rows, aggregate_rows, blocks_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema

__all__ = ["Median", "median_of"]


@aggregators.register("median")
@dataclass(frozen=True)
class Median(Aggregator):
    """The median of each coordinate; every client counts the same, whatever its number of examples.

    It tolerates attackers that are fewer than half of the clients of a round. If clients hold different classes, the
    median of honest updates is smaller than their mean, so training is slower. Codecs that drop coordinates are
    refused.

    Example:
        >>> Median()
        Median()
    """

    needs_every_coordinate: ClassVar[bool] = True

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the medians of weights, running statistics and counters."""
        del cohort
        return aggregate_rows(_rule, contributions, schema)


def _rule(rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return median_of(rows), np.full(len(shares), 1 / len(shares))


def median_of(rows: Rows) -> np.ndarray:
    """Return the median of each coordinate, in double precision; for an even number, the mean of the middle two."""
    made = np.empty(len(rows[0]))
    for part, block in blocks_of(rows):
        made[part] = np.median(block, axis=0)
    return made
