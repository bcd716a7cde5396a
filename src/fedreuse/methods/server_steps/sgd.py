"""Plain server step: move = lr * D."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.errors import require
from fedreuse.core.tensors import Tensors, scale
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps

if TYPE_CHECKING:
    from fedreuse.methods.aggregators.aggregator import Statistics

__all__ = ["SgdStep", "chosen_step"]


@server_steps.register("sgd")
@dataclass(frozen=True)
class SgdStep(ServerStep):
    """Plain step: the direction times a learning rate.

    Args:
        lr: Server learning rate, at least 0. With 1, as in FedAvg, the move is bit-identical to the direction.

    Example: `method: {name: averaging, step: {name: sgd, lr: 0.5}}`.
    """

    lr: float = 1.0

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.lr >= 0, "step.lr must not be negative", self.lr)

    def step(self, direction: Tensors, state: None, statistics: Statistics) -> tuple[Tensors, None]:
        """Return lr * D."""
        del statistics
        return (direction if self.lr == 1.0 else scale(direction, self.lr)), state


def chosen_step(step: ServerStep | None, server_lr: float, mixes: str = "") -> ServerStep:
    """Return the configured step, or a plain one with `server_lr`; both at once are refused, as one would be ignored.

    `mixes` explains why a direction is not made of this round's updates only; steps that read statistics are then
    refused.
    """
    require(server_lr >= 0, "method.server_lr must not be negative", server_lr)
    require(
        step is None or server_lr == 1.0,
        "method.server_lr must stay 1 beside method.step, which has its own lr; set method.step.lr",
        server_lr,
    )
    if step is None:
        return SgdStep(server_lr)
    require(
        not (mixes and step.reads_statistics),
        f"method.step must not read statistics of the round's updates, because {mixes}; choose another step, or "
        "averaging, dg_fedreuse, scaffold or ditto",
        server_steps.name_of(step),
    )
    return step
