"""All clients: how many examples each holds, and the weights that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np

__all__ = ["Population", "Weighting"]

Weighting = Literal["ratio", "ht"]


@dataclass(frozen=True, eq=False)
class Population:
    """Clients 0 .. N-1 and their numbers of training examples.

    Args:
        examples: An integer array with one entry per client.
        max_examples: As many examples of a client count at most in every weight, at least 1, so that a large number
            buys no more influence; None counts them all.

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
        """Number of clients."""
        return len(self.examples)

    @cached_property
    def total_examples(self) -> int:
        """Examples of all clients."""
        return int(self.examples.sum())

    def ratio_weights(self, clients: Collection[int]) -> dict[int, float]:
        """n_i / sum of n_j over these clients: the weights of FedAvg."""
        total = sum(self._counted(client) for client in clients)
        if not total:  # clients without examples send zeros: any weights will do
            return {client: 1 / len(clients) for client in clients}
        return {client: self._counted(client) / total for client in clients}

    def share(self, client: int) -> float:
        """n_i / sum of n_j over all clients."""
        most = self.max_examples
        total = self.total_examples if most is None else int(self.examples.clip(max=most).sum())
        return self._counted(client) / total

    def _counted(self, client: int) -> int:
        """n_i, as far as it counts."""
        examples = int(self.examples[client])
        return examples if self.max_examples is None else min(examples, self.max_examples)

    def ht_weights(self, clients: Collection[int], num_selected: int) -> dict[int, float]:
        """(N / m) n_i / n: unbiased over uniform draws of m clients; these weights need not sum to one."""
        factor = len(self) / num_selected
        return {client: factor * self.share(client) for client in clients}

    def weights(self, kind: Weighting, clients: Collection[int], num_selected: int) -> dict[int, float]:
        """Weights of one kind or the other."""
        return self.ratio_weights(clients) if kind == "ratio" else self.ht_weights(clients, num_selected)
