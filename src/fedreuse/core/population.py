"""All clients: how many examples each holds, and the weights that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np

__all__ = ["Population"]


@dataclass(frozen=True, eq=False)
class Population:
    """Clients 0 .. N-1 and their numbers of training examples."""

    examples: np.ndarray

    def __len__(self) -> int:
        """Number of clients."""
        return len(self.examples)

    @property
    def total_examples(self) -> int:
        """Examples of all clients."""
        return int(self.examples.sum())

    def ratio_weights(self, clients: Collection[int]) -> dict[int, float]:
        """n_i / sum of n_j over these clients: the weights of FedAvg."""
        total = sum(int(self.examples[client]) for client in clients)
        return {client: int(self.examples[client]) / total for client in clients}
