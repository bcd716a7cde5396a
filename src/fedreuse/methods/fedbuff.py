"""FedBuff (Nguyen et al., 2022): buffered asynchronous aggregation with K replies and polynomial staleness weights."""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.alias import Alias, alias
from fedreuse.methods.buffered import Buffered, check_buffer
from fedreuse.methods.server_steps.sgd import SgdStep

__all__ = ["FedBuff"]


@alias("fedbuff")
@dataclass(frozen=True)
class FedBuff(Alias):
    """FedBuff: the server adds the mean of every K updates, each discounted by its staleness.

    `rounds.cohort` is the number of clients that train at the same time; a round is one step. Simulations need
    `devices`.

    Args:
        buffer: Number K of replies per step, at least 1 and at most `rounds.cohort`.
        staleness: Exponent a of the factor (1 + tau)^-a on an update that is tau steps old, at least 0; 0: no
            discount.
        server_lr: Server learning rate, the factor on the mean update; at least 0.

    Example: `method: {name: fedbuff, buffer: 10}`.
    """

    buffer: int = 10
    staleness: float = 0.5
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_buffer(self.buffer, self.staleness)
        super().__post_init__()

    def expand(self) -> Buffered:
        """Return the buffered mean with this server learning rate."""
        return Buffered(self.buffer, self.staleness, 0.0, Mean(), SgdStep(self.server_lr))
