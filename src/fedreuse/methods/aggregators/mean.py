"""The weighted mean: sum of weight_i update_i, the aggregation of FedAvg.

ratio  omega_i = n_i / sum of n_j over the contributing clients
ht     (N / m) n_i / n: unbiased over uniform draws of m of N clients; these weights need not sum to one
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.core.errors import require
from fedreuse.core.tensors import weighted_sum
from fedreuse.methods.aggregators.aggregator import (
    Aggregated,
    Aggregator,
    Contribution,
    Statistics,
    aggregators,
    with_buffers,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.population import Weighting
    from fedreuse.core.schema import ModelSchema

__all__ = ["Mean", "chosen_aggregator"]


@aggregators.register("mean")
@dataclass(frozen=True)
class Mean(Aggregator):
    """Mean of the updates, weighted by the clients' examples.

    Args:
        weighting: `ratio` divides by the examples of the contributing clients, as FedAvg does; `ht` (Horvitz-Thompson)
            by those of all clients, times N / m, which is unbiased if m of N clients are drawn uniformly. Running
            statistics and counters are always averaged by `ratio`, because their weights must sum to one.

    Example:
        >>> Mean(weighting="ht")
        Mean(weighting='ht')
    """

    weighting: Literal["ratio", "ht"] = "ratio"

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the weighted sum, with reused updates decayed."""
        weights = self._weights(contributions, cohort)
        terms = [(weights[client], one.update.weights) for client, one in contributions.items()]
        direction = with_buffers(weighted_sum(terms, schema.weights), contributions, schema)
        return Aggregated(direction, Statistics(contributions, weights))

    def _weights(self, contributions: Mapping[int, Contribution], cohort: Cohort) -> dict[int, float]:
        if self.weighting == "ratio":
            return {client: one.weight * one.decay for client, one in contributions.items()}
        unbiased = cohort.population.ht_weights(contributions, len(cohort.clients))
        return {client: unbiased[client] * one.decay for client, one in contributions.items()}


def chosen_aggregator(aggregate: Aggregator | None, weighting: Weighting = "ratio") -> Aggregator:
    """Return the configured aggregator, or the mean with `weighting`; both are refused, as one would be ignored."""
    require(
        aggregate is None or weighting == "ratio",
        "method.weighting must stay ratio beside method.aggregate; set aggregate: {name: mean, weighting: ht}",
        weighting,
    )
    return Mean(weighting) if aggregate is None else aggregate
