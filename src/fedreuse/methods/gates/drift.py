"""Gate by the model's movement since a cached update was trained, relative to the norm of that update.

    D_i = |w_t - w_{t_i}| / |x_i|        fresh iff D_i >= threshold; D_i = infinity if x_i = 0

w_t is the model that the server would send now, w_{t_i} the one that it sent in the round t_i of the last training of
client i, x_i the update that it received, as decoded; Euclidean norms over the weights. The server has all of these,
so no client needs to be contacted.

Why the move is divided by |x_i|: x_i is the sum of the steps that the client took from w_{t_i}, along which its
gradient changed already. If the gradient is L-Lipschitz, it differs by at most L |x_i| between the ends of the client's
training, and by at most L |w_t - w_{t_i}| = D_i L |x_i| between w_{t_i} and w_t. Below D_i = 1 the second bound is the
smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from fedreuse.core.errors import require
from fedreuse.methods.gates.gate import ScoreThreshold, gates

__all__ = ["Drift"]


@gates.register("drift")
@dataclass(frozen=True)
class Drift(ScoreThreshold):
    """Training if the model has moved far since the cached update was trained. Reused clients are not contacted.

    The score is |w_t - w_{t_i}| / |x_i|, from 0 on: distance between the model now and the one that the cached update
    was trained from, over the norm of that update. A cached update of zeros scores infinity.

    Args:
        max_age: A cached update of this age in rounds, or older, is not reused; at least 1.
        quota: Smallest share of the cohort that trains, in [0, 1]; missing clients are taken by the gate's ranking.
        threshold: The score from which a client trains, positive and finite. At 1 it trains once the model has moved
            as far as its own last training moved it.

    Memory: at most `max_age` - 1 past models at the server, weights only, whatever the number of clients.

    Example: `method: {name: dg_fedreuse, gate: {name: drift, threshold: 0.8, max_age: 8}}`.
    """

    threshold: float = 1.0

    scores_drift: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        require(
            0 < self.threshold < inf,
            "gate.threshold must be positive and finite (1e9 leaves the choice to max_age and quota)",
            self.threshold,
        )

    def threshold_in(self, round_number: int) -> float:
        """Return the threshold, the same in every round."""
        del round_number
        return self.threshold
