"""FLASC: sparse communication of adapters in both directions, with dense training.

down: w'_t = TopK(w_t)              the largest coordinates of the model, zeros elsewhere
client: trains every coordinate from w'_t to w_i
up: u_i = TopK(w_i - w'_t)
server: w_{t+1} = w_t + server_lr * sum_i omega_i u_i          on the dense model, which the server keeps
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.plain import Plain
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.alias import Alias, alias
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.server_steps.sgd import SgdStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import Link

__all__ = ["Flasc"]


@alias("flasc")
@dataclass(frozen=True)
class Flasc(Alias):
    """FLASC: only the largest coordinates of model (down) and update (up) are sent; training is dense.

    Made for networks of which only adapters are trained (`network: {name: lora, ...}`). A client starts from the model
    with its small coordinates set to zero, which harms a network whose weights are all trained.

    Args:
        ratio: Share of the coordinates that a client sends, in (0, 1].
        server_ratio: Share of the coordinates that the server sends, in (0, 1].
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.

    Example: `method: {name: flasc, ratio: 0.25, server_ratio: 0.25}`.
    """

    ratio: float = 0.25
    server_ratio: float = 0.25
    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The largest coordinates of the update, without memory."""
        return {"update": Plain(TopK(self.ratio))}

    @property
    def default_downlink(self) -> Mapping[str, Link]:
        """The largest coordinates of the model; the others are zeros at the client."""
        return {"model": Plain(TopK(self.server_ratio))}

    def expand(self) -> Averaging:
        """Return FedAvg's averaging."""
        return Averaging(0.0, Mean(self.weighting), SgdStep(self.server_lr))
