"""Base class of aggregators, which turn the contributions of a round into one direction with statistics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from fedreuse.core.model import Model
from fedreuse.core.registry import Registry
from fedreuse.core.tensors import Tensors, dot, weighted_sum, zeros

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.message import Event
    from fedreuse.core.schema import ModelSchema

__all__ = [
    "Aggregated", "Aggregator", "Contribution", "Statistics", "aggregators", "fresh_contributions", "judged",
    "with_buffers",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Contribution:
    """A client's contribution to a round.

    Args:
        update: Trained minus received, as the server decoded it, with running statistics and counters.
        weight: The client's share of the round under FedAvg's weights, at least 0; the shares of a round sum to 1.
        decay: Factor on the weight, in [0, 1]; 1 for a fresh update.
        buffers_weight: Weight of its running statistics and counters; None if they do not count in this round.
        age: Rounds since the update was sent: 0 is fresh, 1 and more is reused; None is reused with unknown age.
        follows: Rate per round at which the client's model follows the server's; None if it is the server's.
        slope: Effect of the received model on the client's update, from its last two trainings; None if unknown.
    """

    update: Model
    weight: float
    decay: float = 1.0
    buffers_weight: float | None = None
    age: int | None = 0
    follows: float | None = None
    slope: float | None = None

    @property
    def is_fresh(self) -> bool:
        """True if the update was sent in this round."""
        return self.age == 0


@dataclass(frozen=True, eq=False)
class Statistics:
    """The contributions behind a direction, for server steps that need them.

    Args:
        contributions: All contributions of the round, by client.
        weights: Effective weight of each update; a client that was left out is missing.
    """

    contributions: Mapping[int, Contribution]
    weights: Mapping[int, float]

    @property
    def num_contributions(self) -> int:
        """Number of updates that entered the direction."""
        return len(self.weights)

    @cached_property
    def mean_square_norm(self) -> float:
        """Weighted sum of |update_i|^2 over the updates that entered; computed on first use."""
        updates = {client: self.contributions[client].update.weights for client in self.weights}
        return sum(weight * dot(updates[client], updates[client]) for client, weight in self.weights.items())


@dataclass(frozen=True, eq=False)
class Aggregated:
    """The direction of a round, its statistics, and the aggregator's verdicts on single clients.

    `verdicts` has a few words for each client that was left out or changed, such as `{3: "left out by krum"}`; they
    become the reasons of the round's events.
    """

    direction: Model
    statistics: Statistics
    verdicts: Mapping[int, str] = field(default_factory=dict)


class Aggregator(ABC):
    """Base class of aggregators: frozen dataclasses that turn the contributions of a round into a direction.

    Running statistics and counters are part of a contribution; `with_buffers` averages them as FedAvg does.

    Example:
        >>> from dataclasses import dataclass
        >>> from fedreuse import Aggregator
        >>> from fedreuse.methods.aggregators.aggregator import Aggregated, Statistics, with_buffers
        >>> @dataclass(frozen=True)
        ... class Largest(Aggregator):
        ...     def aggregate(self, contributions, cohort, schema):
        ...         chosen = max(contributions, key=lambda client: contributions[client].weight)
        ...         kept = {chosen: contributions[chosen]}
        ...         direction = with_buffers(kept[chosen].update.weights, kept, schema)
        ...         verdicts = {client: "left out by largest" for client in contributions if client != chosen}
        ...         return Aggregated(direction, Statistics(contributions, {chosen: 1.0}), verdicts)
        >>> Largest()
        Largest()
    """

    @property
    def needs_every_coordinate(self) -> bool:
        """True if the rule compares single coordinates, so that dropped coordinates would count as zeros."""
        return False

    @abstractmethod
    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the direction of a round, its statistics and verdicts.

        Args:
            contributions: At least one, in client order; sums must keep this order to be reproducible.
            cohort: The selected clients and the round; its `rng` gives reproducible random numbers.
            schema: Schema of the model; updates may lack tensors of it.
        """


aggregators: Registry[Aggregator] = Registry("aggregators", "fedreuse.methods.aggregators", base=Aggregator)


def fresh_contributions(updates: Mapping[int, Model], cohort: Cohort) -> dict[int, Contribution]:
    """Return the contributions of a round in which all contributing clients have trained."""
    shares = cohort.population.ratio_weights(updates)
    return {client: Contribution(update, shares[client], 1.0, shares[client]) for client, update in updates.items()}


def with_buffers(weights: Tensors, contributions: Mapping[int, Contribution], schema: ModelSchema) -> Model:
    """Combine a direction of the weights with the weighted means of running statistics and counters."""
    if not schema.buffers.specs and not schema.counters.specs:
        return Model(weights, zeros(schema.buffers), zeros(schema.counters))
    counted = [
        (contribution.buffers_weight, contribution.update)
        for contribution in contributions.values()
        if contribution.buffers_weight is not None
    ]
    return Model(
        weights,
        weighted_sum([(share, update.buffers) for share, update in counted], schema.buffers),
        weighted_sum([(share, update.counters) for share, update in counted], schema.counters),
    )


def judged(events: Iterable[Event], verdicts: Mapping[int, str]) -> tuple[Event, ...]:
    """Return the events of a round, with the aggregator's verdicts as reasons."""
    return tuple(
        replace(event, reason=verdicts[event.client]) if event.client in verdicts else event for event in events
    )
