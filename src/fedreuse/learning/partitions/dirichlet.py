"""Label skew: each class is divided among the clients in Dirichlet proportions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedreuse.core.errors import require
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import Partition, by_class, partitions, require_enough
from fedreuse.learning.partitions.proportions import OnSmall, draw_cuts, move_to_small

__all__ = ["Dirichlet"]


@partitions.register("dirichlet")
@dataclass(frozen=True)
class Dirichlet(Partition):
    """Label skew: each class is divided among the clients in proportions from a symmetric Dirichlet distribution.

    Proportions p ~ Dir(alpha, ..., alpha) are drawn per class, and the shuffled class is cut at
    floor(cumsum(p) * examples of the class); sizes are not balanced. If a client ends up below `min_examples`,
    `redraw` draws the whole partition again (at most `max_redraws` times, and ten million proportions in all), and
    `move` fills it up from the largest clients: one example at a time from the client that is largest at that moment,
    the lowest id among equals, and evenly spaced over that client's examples.

    Args:
        alpha: Concentration, above 0; small values give strong skew, 0.5 is common, large values give almost none.
        min_examples: Smallest number of examples of a client, at least 1.
        max_redraws: Largest number of redraws of the whole partition, at least 0.
        on_small: Treatment of clients below `min_examples`: `redraw` or `move`, as above.

    Raises:
        ConfigError: A client is below `min_examples` in every draw, or there are too few examples.

    Example:
        task: {name: digits, clients: 20, partition: {name: dirichlet, alpha: 0.5}}

    """

    alpha: float
    min_examples: int = 10
    max_redraws: int = 100
    on_small: OnSmall = "redraw"

    deals_by_class = True

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(
            self.alpha > 0 and math.isfinite(self.alpha),
            "dirichlet.alpha must be above 0 and finite (no skew at all is the partition iid)",
            self.alpha,
        )
        require(self.min_examples >= 1, "dirichlet.min_examples must be at least 1", self.min_examples)
        require(self.max_redraws >= 0, "dirichlet.max_redraws must be at least 0", self.max_redraws)
        require(self.on_small in ("redraw", "move"), "dirichlet.on_small must be redraw or move", self.on_small)

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Draw proportions until no client is too small, then shuffle and cut each class."""
        require_enough(len(examples), num_clients, self.min_examples)
        class_sizes, members_of = by_class(examples.labels)
        rule = ("dirichlet", self.min_examples, self.max_redraws, self.on_small)
        cut, redraws = draw_cuts(self.alpha, class_sizes, num_clients, rng, rule)
        owners = np.empty(len(examples), dtype=np.int64)
        for members, owners_of_class in zip(members_of, cut, strict=True):
            owners[rng.permutation(members)] = owners_of_class
        if self.on_small == "move":
            owners = move_to_small(owners, num_clients, self.min_examples)
        return ClientIndex.from_owners(owners, num_clients, redraws)
