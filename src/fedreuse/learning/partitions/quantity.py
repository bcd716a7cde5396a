"""Quantity skew: clients of very different sizes with the same distribution of labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedreuse.core.errors import require
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import Partition, partitions, require_enough
from fedreuse.learning.partitions.proportions import OnSmall, draw_cuts, move_to_small

__all__ = ["Quantity"]


@partitions.register("quantity")
@dataclass(frozen=True)
class Quantity(Partition):
    """Quantity skew: the shuffled examples are cut in proportions from one symmetric Dirichlet draw.

    This is the quantity skew q ~ Dir(beta) of Li, Diao, Chen and He (Federated Learning on Non-IID Data Silos, ICDE
    2022). A client below `min_examples` is treated as in the partition `dirichlet`.

    Args:
        alpha: Concentration, above 0; at 0.5 some clients are many times larger than others, large values give equal
            sizes.
        min_examples: Smallest number of examples of a client, at least 1.
        max_redraws: Largest number of redraws of the sizes, at least 0.
        on_small: `redraw`, or `move`: fill up small clients from the largest ones.

    Raises:
        ConfigError: A client is below `min_examples` in every draw, or there are too few examples.

    Example:
        task: {name: digits, clients: 20, partition: {name: quantity, alpha: 0.5}}

    """

    alpha: float
    min_examples: int = 10
    max_redraws: int = 100
    on_small: OnSmall = "redraw"

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.alpha > 0 and math.isfinite(self.alpha), "quantity.alpha must be above 0 and finite", self.alpha)
        require(self.min_examples >= 1, "quantity.min_examples must be at least 1", self.min_examples)
        require(self.max_redraws >= 0, "quantity.max_redraws must be at least 0", self.max_redraws)

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Draw the sizes, shuffle and cut."""
        require_enough(len(examples), num_clients, self.min_examples)
        rule = ("quantity", self.min_examples, self.max_redraws, self.on_small)
        (cut,), redraws = draw_cuts(self.alpha, [len(examples)], num_clients, rng, rule)
        owners = np.empty(len(examples), dtype=np.int64)
        owners[rng.permutation(len(examples))] = cut
        if self.on_small == "move":
            owners = move_to_small(owners, num_clients, self.min_examples)
        return ClientIndex.from_owners(owners, num_clients, redraws)
