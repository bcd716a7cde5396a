"""Private mean: clipped updates are added, with Gaussian noise (McMahan et al., ICLR 2018: DP-FedAvg).

c_i = decay_i min(1, clip / |delta_i|) delta_i            weights and running statistics as one vector; counters stay
D   = (sum of c_i + N(0, (noise clip)^2 I)) / m           m: number of selected clients, not of replies

One client changes the sum by at most decay_i clip: a round is a Gaussian mechanism with multiplier noise / decay_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.core.model import Model
from fedreuse.core.tensors import Tensors, to_dense, zeros
from fedreuse.methods.aggregators.aggregator import Aggregated, Aggregator, Contribution, Statistics, aggregators

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.schema import ModelSchema

__all__ = ["PrivateMean"]


@aggregators.register("private_mean")
@dataclass(frozen=True)
class PrivateMean(Aggregator):
    """Mean of clipped updates with Gaussian noise: client-level differential privacy, reported in the summary.

    Every client counts the same, and the sum is divided by the number of selected clients, not of replies. Batch
    counters do not change, because they would reveal a client's number of examples. The server is trusted: it sees
    single updates.

    Args:
        clip: Largest norm of an update, weights and running statistics together, that is not clipped; above 0.
        noise: Standard deviation of the noise on the sum, as a multiple of `clip`; above 0.
        delta: The delta for which epsilon is reported, in (0, 1); well below one over the number of clients.

    Example:
        >>> PrivateMean(clip=0.5, noise=2.0)
        PrivateMean(clip=0.5, noise=2.0, delta=1e-05)
    """

    clip: float = 1.0
    noise: float = 1.0
    delta: float = 1e-5

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.clip > 0, "private_mean.clip must be above 0", self.clip)
        require(self.noise > 0, "private_mean.noise must be above 0", self.noise)
        require(0 < self.delta < 1, "private_mean.delta must be in (0, 1)", self.delta)

    def aggregate(self, contributions: Mapping[int, Contribution], cohort: Cohort, schema: ModelSchema) -> Aggregated:
        """Return the noisy sum over the number of selected clients; the statistics reveal nothing of single updates."""
        num_weights = schema.weights.size
        # Weights and running statistics are one vector with one norm: two mechanisms would both spend budget.
        total = np.zeros(num_weights + schema.buffers.size)
        for contribution in contributions.values():
            total += self._clipped(contribution, schema)
        drawn = cohort.noise("private mean", len(total))
        made = (total + self.noise * self.clip * drawn) / len(cohort.clients)
        direction = Model(
            Tensors(schema.weights, made[:num_weights].astype(schema.weights.dtype)),
            Tensors(schema.buffers, made[num_weights:].astype(schema.buffers.dtype)),
            zeros(schema.counters),
        )
        return Aggregated(direction, Statistics({}, {client: 1 / len(cohort.clients) for client in contributions}))

    def _clipped(self, contribution: Contribution, schema: ModelSchema) -> np.ndarray:
        """Return one client's term of the sum, whose norm is at most `decay * clip`."""
        update = contribution.update
        weights = to_dense(update.weights).values.astype(np.float64)
        has_buffers = contribution.buffers_weight is not None and update.buffers.schema == schema.buffers
        buffers = to_dense(update.buffers).values if has_buffers else np.zeros(schema.buffers.size)
        row = np.concatenate([weights, buffers.astype(np.float64)])
        norm = float(np.sqrt(np.sum(row * row)))
        clipped: np.ndarray = row * (contribution.decay * (1.0 if norm <= self.clip else self.clip / norm))
        return clipped
