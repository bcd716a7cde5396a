"""Bucketing: updates become means of random groups before another rule (Karimireddy, He, Jaggi, ICLR 2022).

Clients in random order are cut into buckets of `size`, the last of which may be smaller.
y_b  = plain mean of the updates in bucket b
D    = the inner rule's direction of all y_b
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.errors import require
from fedreuse.core.registry import part
from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, aggregators
from fedreuse.methods.aggregators.groups import Groups, aggregate_groups, check_inner

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema

__all__ = ["Bucketing"]


@aggregators.register("bucketing")
@dataclass(frozen=True)
class Bucketing(Aggregator):
    """Another rule on means of random buckets of updates, for clients whose data differ.

    The means differ less from each other than the updates. One Byzantine client spoils a bucket, so with f of n clients
    up to f of the n / size buckets are bad: a `bad` of the inner rule is a share of the buckets and must be `size`
    times as large. Clients of a bucket count the same; the last bucket weighs less if it has fewer. Buckets are drawn
    from the run's seed in each round.

    Args:
        size: Clients per bucket, at least 1, where 1 is the inner rule on the updates; the paper recommends 2.
        inner: The rule that aggregates the means; not `private_mean`.

    Raises:
        ConfigError: `size` is below 1, or the inner rule weighs or protects single clients.

    Example:
        >>> from fedreuse.methods.aggregators.krum import Krum
        >>> Bucketing(size=2, inner=Krum(bad=0.4))
        Bucketing(size=2, inner=Krum(bad=0.4))
    """

    size: int = 2
    inner: Aggregator = part(aggregators, "geometric_median")

    def __post_init__(self) -> None:
        """Check the range and the inner rule."""
        require(self.size >= 1, "bucketing.size must be at least 1", self.size)
        check_inner(self.inner, "bucketing")

    @property
    def needs_every_coordinate(self) -> bool:
        """True if the inner rule compares single coordinates."""
        return self.inner.needs_every_coordinate

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the inner rule's direction; weights, running statistics and counters have the same buckets."""
        buckets = self._buckets(contributions, cohort)

        def grouping(rows: Mapping[int, np.ndarray]) -> Groups:
            present = {bucket[0]: [client for client in bucket if client in rows] for bucket in buckets}
            return {first: clients for first, clients in present.items() if clients}

        return aggregate_groups(self.inner, grouping, contributions, cohort, schema)

    def _buckets(self, contributions: Mapping[int, Contribution], cohort: Cohort) -> list[list[int]]:
        """Return the buckets in client order, so that sums and the inner rule's ties are reproducible."""
        clients = list(contributions)
        drawn = [clients[index] for index in cohort.rng("bucketing").permutation(len(clients))]
        return sorted(sorted(drawn[start : start + self.size]) for start in range(0, len(drawn), self.size))
