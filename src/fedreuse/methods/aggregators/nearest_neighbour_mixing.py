"""Nearest-neighbour mixing: updates become means of near ones before another rule (Allouah et al., AISTATS 2023).

f    = floor(bad n)
y_i  = plain mean of the n - f updates nearest to delta_i, itself included
D    = the inner rule's direction of y_1, ..., y_n
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.core.registry import part
from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, aggregators
from fedreuse.methods.aggregators.groups import Groups, aggregate_groups, check_inner
from fedreuse.methods.aggregators.rows import num_bad, square_distances

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema

__all__ = ["NearestNeighbourMixing"]


@aggregators.register("nearest_neighbour_mixing")
@dataclass(frozen=True)
class NearestNeighbourMixing(Aggregator):
    """Another rule on means of near updates, for clients whose data differ.

    Mixing brings honest updates closer together, so that the inner rule loses less of them. Every client counts the
    same. The inner rule has a `bad` of its own, which should be the same.

    Args:
        bad: Share of the round's contributions that may be Byzantine, in [0, 0.5); the number f is rounded down.
        inner: The rule that aggregates the means; not `private_mean`.

    Raises:
        ConfigError: `bad` is out of its range, or the inner rule weighs or protects single clients.

    Example:
        >>> from fedreuse.methods.aggregators.trimmed_mean import TrimmedMean
        >>> NearestNeighbourMixing(bad=0.1, inner=TrimmedMean(bad=0.1))
        NearestNeighbourMixing(bad=0.1, inner=TrimmedMean(bad=0.1))
    """

    bad: float = 0.2
    inner: Aggregator = part(aggregators, "geometric_median")

    def __post_init__(self) -> None:
        """Check the range and the inner rule."""
        require(0 <= self.bad < 0.5, "nearest_neighbour_mixing.bad must be in [0, 0.5)", self.bad)
        check_inner(self.inner, "nearest_neighbour_mixing")

    @property
    def needs_every_coordinate(self) -> bool:
        """True if the inner rule compares single coordinates."""
        return self.inner.needs_every_coordinate

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the inner rule's direction; running statistics and counters have neighbours of their own."""
        return aggregate_groups(self.inner, self._neighbours, contributions, cohort, schema)

    def _neighbours(self, rows: Mapping[int, np.ndarray]) -> Groups:
        clients = list(rows)
        squares = square_distances(list(rows.values()))
        np.fill_diagonal(squares, -1.0)  # an update is its own nearest, also where others equal it
        kept = len(clients) - num_bad(self.bad, len(clients))
        nearest = np.sort(np.argsort(squares, axis=1, kind="stable")[:, :kept], axis=1)
        return {client: [clients[index] for index in row] for client, row in zip(clients, nearest, strict=True)}
