"""A plain step: move = lr * D."""

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
    """Move by the direction times a learning rate.

    Args:
        lr: At least 0. With 1, FedAvg's, the move is the direction itself, bit for bit.

    Example: `method: {name: averaging, step: {name: sgd, lr: 0.5}}`.
    """

    lr: float = 1.0

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.lr >= 0, "step.lr must not be negative", self.lr)

    def step(self, direction: Tensors, state: None, statistics: Statistics) -> tuple[Tensors, None]:
        """lr * D."""
        del statistics
        return (direction if self.lr == 1.0 else scale(direction, self.lr)), state


def chosen_step(step: ServerStep | None, server_lr: float, mixes: str = "") -> ServerStep:
    """The step that a method was given, or a plain one with its `server_lr`; both at once would hide one of them.

    `mixes` says what a direction holds besides this round's updates; a step that reads their statistics is refused.
    """
    require(server_lr >= 0, "method.server_lr must not be negative", server_lr)
    require(
        step is None or server_lr == 1.0,
        "method.server_lr must stay 1 beside method.step, which has an lr of its own; set method.step.lr",
        server_lr,
    )
    if step is None:
        return SgdStep(server_lr)
    require(
        not (mixes and step.reads_statistics),
        f"method.step must not need the updates that a direction is made of, because {mixes}; choose another step, or "
        "averaging, dg_fedreuse, scaffold or ditto",
        server_steps.name_of(step),
    )
    return step
