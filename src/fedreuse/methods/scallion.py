"""SCALLION (Huang, Li, Li, 2024): SCAFFOLD with one uplink vector, for unbiased codecs.

d_i = C(alpha (g_i - c_i));  c_i <- c_i + d_i         g_i: the mean gradient on the local path
"""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.core.errors import require
from fedreuse.core.method import methods
from fedreuse.core.registry import optional_part, part
from fedreuse.methods.aggregators.aggregator import Aggregator, aggregators
from fedreuse.methods.increments import IncrementClient, IncrementMethod
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps
from fedreuse.methods.server_steps.sgd import chosen_step

__all__ = ["Scallion"]


@methods.register("scallion")
@dataclass(frozen=True)
class Scallion(IncrementMethod):
    """SCAFFOLD whose clients send only the increment of their control, with an unbiased codec.

    Args:
        codec: Codec of the increment; it should be unbiased (`qsgd`, `rand_k`, `natural`, `drive`, `eden`).
        alpha: Share of the increment that is sent, in (0, 1]; smaller values are more stable under coarse codecs. 1
            with a lossless codec is SCAFFOLD.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        aggregate: Aggregator of the round's updates; null is the weighted mean.
        step: Server step; null is `sgd` with `server_lr`.

    Example: `method: {name: scallion, codec: {name: qsgd, bits: 4}, alpha: 0.1}`.
    """

    codec: Codec = part(codecs, {"name": "qsgd", "bits": 4})
    alpha: float = 0.1
    server_lr: float = 1.0
    aggregate: Aggregator | None = optional_part(aggregators)
    step: ServerStep | None = optional_part(server_steps)

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.alpha <= 1, "method.alpha must be in (0, 1]", self.alpha)
        chosen_step(self.step, self.server_lr)

    @property
    def client(self) -> IncrementClient:
        """The client half, which sends a share of the difference between gradient and control."""
        return IncrementClient(self.alpha, has_average=False)
