"""SCAFCOM (Huang, Li, Li, 2024): SCAFFOLD with one uplink vector and local momentum, for contractive codecs.

v_i <- (1 - beta) v_i + beta g_i;  d_i = C(v_i - c_i);  c_i <- c_i + d_i         g_i: the mean gradient on the path
"""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.compression.codecs.codec import Codec, codecs, require_contraction
from fedreuse.core.errors import require
from fedreuse.core.method import methods
from fedreuse.core.registry import optional_part, part
from fedreuse.methods.aggregators.aggregator import Aggregator, aggregators
from fedreuse.methods.increments import IncrementClient, IncrementMethod
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps
from fedreuse.methods.server_steps.sgd import chosen_step

__all__ = ["Scafcom"]


@methods.register("scafcom")
@dataclass(frozen=True)
class Scafcom(IncrementMethod):
    """SCAFFOLD whose clients send only the compressed difference of an averaged gradient and their control.

    Args:
        codec: Codec of the difference; it must contract (`top_k`, `ternary`, ...).
        beta: Share of the new gradient in the average, in (0, 1]. 1 with a lossless codec is SCAFFOLD.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        aggregate: Aggregator of the round's updates; null is the weighted mean.
        step: Server step; null is `sgd` with `server_lr`.

    Example: `method: {name: scafcom, codec: {name: top_k, ratio: 0.1}, beta: 0.2}`.
    """

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    beta: float = 0.2
    server_lr: float = 1.0
    aggregate: Aggregator | None = optional_part(aggregators)
    step: ServerStep | None = optional_part(server_steps)

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.beta <= 1, "method.beta must be in (0, 1]", self.beta)
        require_contraction(self.codec, "method")
        chosen_step(self.step, self.server_lr)

    @property
    def client(self) -> IncrementClient:
        """The client half, which averages its gradients and sends their difference from its control."""
        return IncrementClient(self.beta, has_average=True)
