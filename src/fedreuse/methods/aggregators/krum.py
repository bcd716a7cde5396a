"""Krum and multi-Krum: only updates that are close to many others count (Blanchard et al., NeurIPS 2017).

f       = floor(bad n)
score_i = sum of |delta_i - delta_j|^2 over the n - f - 2 nearest others j
D       = the update with the least score; of multi-Krum, the plain mean of the `keep` least
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, aggregators
from fedreuse.methods.aggregators.rows import Rows, aggregate_rows, num_bad, row_sum, square_distances

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema

__all__ = ["Krum", "MultiKrum", "krum_scores"]


@aggregators.register("krum")
@dataclass(frozen=True)
class Krum(Aggregator):
    """Krum: the one update that is closest to the others; all others are left out.

    The published bound holds for n >= 2f + 3 contributions of which f are Byzantine; with fewer, at least one neighbour
    is counted. A round uses one client's update only, which costs accuracy if clients differ.

    Args:
        bad: Share of the round's contributions that may be Byzantine, in [0, 0.5); the number f is rounded down.

    Example:
        >>> Krum(bad=0.1)
        Krum(bad=0.1)
    """

    bad: float = 0.2

    def __post_init__(self) -> None:
        """Check the range."""
        require(0 <= self.bad < 0.5, "krum.bad must be in [0, 0.5)", self.bad)

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the chosen update; running statistics and counters are chosen separately."""
        del cohort
        return _closest(contributions, schema, self.bad, 1, "krum")


@aggregators.register("multi_krum")
@dataclass(frozen=True)
class MultiKrum(Aggregator):
    """Multi-Krum: the unweighted mean of the updates that are closest to the others; the rest are left out.

    Args:
        bad: Share of the round's contributions that may be Byzantine, in [0, 0.5); the number f is rounded down.
        keep: Number of updates in the mean, at least 1; null is n - f - 2, for which the published bound holds.

    Example:
        >>> MultiKrum(bad=0.1, keep=5)
        MultiKrum(bad=0.1, keep=5)
    """

    bad: float = 0.2
    keep: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 <= self.bad < 0.5, "multi_krum.bad must be in [0, 0.5)", self.bad)
        require(self.keep is None or self.keep >= 1, "multi_krum.keep must be at least 1, or null", self.keep)

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the mean of the kept updates; running statistics and counters are chosen separately."""
        del cohort
        return _closest(contributions, schema, self.bad, self.keep, "multi_krum")


def _closest(
    contributions: Mapping[int, Contribution], schema: ModelSchema, bad: float, keep: int | None, name: str
) -> Aggregated:
    def rule(rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        neighbours = max(1, len(rows) - num_bad(bad, len(rows)) - 2)
        kept = np.argsort(krum_scores(square_distances(rows), neighbours), kind="stable")[
            : neighbours if keep is None else keep
        ]
        # Equal weights, whatever the examples: counts are reported by clients, and an attacker would report many.
        counted = np.zeros(len(shares))
        counted[kept] = 1 / len(kept)
        return row_sum(rows, counted), counted

    def verdict(_share: float, counted: float) -> str:
        return "" if counted else f"left out by {name}"

    return aggregate_rows(rule, contributions, schema, verdict)


def krum_scores(squares: np.ndarray, neighbours: int) -> np.ndarray:
    """Return for each row of a matrix of squared distances the sum over its nearest others."""
    return np.array([np.sum(np.sort(np.delete(row, own))[:neighbours]) for own, row in enumerate(squares)])
