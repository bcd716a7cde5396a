"""Mean cross-entropy of class scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch.nn import functional

from fedreuse.core.errors import require
from fedreuse.learning.losses.loss import losses

if TYPE_CHECKING:
    import torch

__all__ = ["CrossEntropy"]


@losses.register("cross_entropy")
@dataclass(frozen=True)
class CrossEntropy:
    """Mean cross-entropy of class scores.

    Args:
        label_smoothing: Share of the target that is spread evenly over all classes, in [0, 1).

    Example: `task: {loss: {name: cross_entropy, label_smoothing: 0.1}}`.
    """

    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 <= self.label_smoothing < 1, "task.loss.label_smoothing must be in [0, 1)", self.label_smoothing)

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Mean over the batch."""
        return functional.cross_entropy(outputs, labels, label_smoothing=self.label_smoothing)
