"""All clients, their numbers of examples, and the aggregation weights that follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np

__all__ = ["MOST_HELD", "Population", "Weighting"]

MOST_HELD = 1000
"""Largest number of clients for which a server keeps one vector each by default."""

Weighting = Literal["ratio", "ht"]


@dataclass(frozen=True, eq=False)
class Population:
    """Clients 0 .. N-1 and their numbers of training examples.

    Args:
        examples: An integer array with one entry per client.
        max_examples: Cap on a client's number of examples in all weights, at least 1, which bounds its influence;
            None: no cap.

    Example:
        >>> import numpy as np
        >>> from fedreuse import Population
        >>> population = Population(np.array([30, 10, 60]))
        >>> len(population), population.total_examples
        (3, 100)
        >>> population.ratio_weights([0, 1])
        {0: 0.75, 1: 0.25}
    """

    examples: np.ndarray
    max_examples: int | None = None

    def __len__(self) -> int:
        """Return the number of clients."""
        return len(self.examples)

    @cached_property
    def total_examples(self) -> int:
        """Number of examples of all clients."""
        return int(self.examples.sum())

    def ratio_weights(self, clients: Collection[int]) -> dict[int, float]:
        """Return n_i / sum of n_j over these clients: the weights of FedAvg."""
        total = sum(self._counted(client) for client in clients)
        if not total:  # clients without examples send zeros, so any weights give the same sum
            return {client: 1 / len(clients) for client in clients}
        return {client: self._counted(client) / total for client in clients}

    def share(self, client: int) -> float:
        """Return n_i / sum of n_j over all clients."""
        most = self.max_examples
        total = self.total_examples if most is None else int(self.examples.clip(max=most).sum())
        return self._counted(client) / total

    def _counted(self, client: int) -> int:
        """Return n_i, capped at `max_examples`."""
        examples = int(self.examples[client])
        return examples if self.max_examples is None else min(examples, self.max_examples)

    def ht_weights(self, clients: Collection[int], num_selected: int) -> dict[int, float]:
        """Return the Horvitz-Thompson weights (N / m) n_i / n, where m is `num_selected`.

        They are unbiased over uniform draws of m clients, and need not sum to one.
        """
        factor = len(self) / num_selected
        return {client: factor * self.share(client) for client in clients}

    def weights(self, kind: Weighting, clients: Collection[int], num_selected: int) -> dict[int, float]:
        """Return the weights of a kind: `ratio` or `ht`."""
        return self.ratio_weights(clients) if kind == "ratio" else self.ht_weights(clients, num_selected)
