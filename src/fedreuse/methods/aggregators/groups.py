"""Aggregation of means over groups of clients, for rules that mix updates before another rule aggregates them.

y_g = mean over the clients i of group g of decay_i delta_i;  share of g: its clients over those of all groups
D   = the inner rule's direction of all y_g

A client's weight is the sum over its groups of the group's weight / its number of clients, times decay_i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import ConfigError
from fedreuse.core.model import Model
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, Statistics
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.aggregators.private_mean import PrivateMean
from fedreuse.methods.aggregators.rows import row_of, row_sum, tensors_of

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema, Schema

__all__ = ["Grouping", "Groups", "aggregate_groups", "check_inner"]

Groups = Mapping[int, Sequence[int]]
"""Clients of each group, in client order; a group has the id of one client."""
Grouping = Callable[[Mapping[int, np.ndarray]], Groups]
"""Function that groups the rows of a role, by client; called for each role, because statistics can be forged alone."""


def check_inner(inner: Aggregator, name: str) -> None:
    """Raise if the inner rule weighs or protects single clients, which it would not see.

    Raises:
        ConfigError: The inner rule is `private_mean`, or `mean` with `weighting: ht`.
    """
    if isinstance(inner, PrivateMean):
        raise ConfigError(
            f"{name}.inner: private_mean is refused, because epsilon counts clipped updates of single clients, not "
            "means of several; set aggregate: private_mean alone, or another inner rule"
        )
    if isinstance(inner, Mean) and inner.weighting != "ratio":
        raise ConfigError(
            f"{name}.inner: mean with weighting {inner.weighting} is refused, because its weights are for clients, not "
            "for means of several; set weighting: ratio"
        )


def aggregate_groups(
    inner: Aggregator,
    grouping: Grouping,
    contributions: Mapping[int, Contribution],
    cohort: Cohort,
    schema: ModelSchema,
) -> Aggregated:
    """Aggregate means over groups by the inner rule; statistics and verdicts are those of the single clients.

    A client has a verdict if all its groups have one.
    """
    counting = {client: one.update for client, one in contributions.items() if one.buffers_weight}
    total = sum(one.buffers_weight or 0.0 for one in contributions.values())
    with np.errstate(over="ignore"):  # the distance of a huge update overflows to infinity, which is far
        rows = {client: row_of(one.update.weights, one.decay, schema.weights) for client, one in contributions.items()}
        groups, weights = _means(grouping, rows, schema.weights)
        rows = {client: row_of(update.buffers, 1.0, schema.buffers) for client, update in counting.items()}
        held, buffers = _means(grouping, rows, schema.buffers)
        rows = {client: row_of(update.counters, 1.0, schema.counters) for client, update in counting.items()}
        _, counters = _means(grouping, rows, schema.counters)
    shares, statistics_shares = _shares(groups), _shares(held)
    empty = zeros(schema.buffers), zeros(schema.counters)
    mixed = {
        group: replace(
            contributions[group],
            update=Model(weights[group], buffers.get(group, empty[0]), counters.get(group, empty[1])),
            weight=shares[group],
            decay=1.0,
            buffers_weight=total * statistics_shares[group] if group in held else None,
        )
        for group in groups
    }
    made = inner.aggregate(mixed, cohort, schema)
    return Aggregated(
        made.direction,
        Statistics(contributions, _client_weights(made.statistics.weights, groups, contributions)),
        _client_verdicts(made.verdicts, groups, contributions),
    )


def _means(grouping: Grouping, rows: Mapping[int, np.ndarray], schema: Schema) -> tuple[Groups, Mapping[int, Tensors]]:
    """Return the groups of a role, and the mean of each."""
    groups = grouping(rows) if rows else {}
    return groups, {
        group: tensors_of(
            row_sum([rows[client] for client in clients], np.full(len(clients), 1 / len(clients))), schema
        )
        for group, clients in groups.items()
    }


def _shares(groups: Groups) -> dict[int, float]:
    total = sum(map(len, groups.values()))
    return {group: len(clients) / total for group, clients in groups.items()}


def _client_weights(
    of_groups: Mapping[int, float], groups: Groups, contributions: Mapping[int, Contribution]
) -> dict[int, float]:
    sums = dict.fromkeys(contributions, 0.0)
    for group, weight in of_groups.items():
        for client in groups[group]:
            sums[client] += weight / len(groups[group])
    return {client: weight * contributions[client].decay for client, weight in sums.items() if weight > 0}


def _client_verdicts(of_groups: Mapping[int, str], groups: Groups, clients: Iterable[int]) -> dict[int, str]:
    words = {client: [of_groups.get(group, "") for group in groups if client in groups[group]] for client in clients}
    return {client: given[0] for client, given in words.items() if given and all(given)}
