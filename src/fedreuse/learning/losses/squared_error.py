"""Mean squared error of predicted numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch.nn import functional

from fedreuse.learning.losses.loss import Loss, losses
from fedreuse.learning.targets import aligned

if TYPE_CHECKING:
    import torch

__all__ = ["SquaredError"]


@losses.register("squared_error")
@dataclass(frozen=True)
class SquaredError(Loss):
    """Mean of (output - label)^2 over examples and outputs, in the squared unit of the labels.

    Example: `task: {loss: squared_error, metric: r2}`.
    """

    label_kinds = ("numbers",)

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the mean over the batch."""
        outputs, labels = aligned(outputs, labels)
        return functional.mse_loss(outputs, labels.to(outputs.dtype))

    def terms(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the squared error of every number."""
        outputs, labels = aligned(outputs, labels)
        return functional.mse_loss(outputs, labels.to(outputs.dtype), reduction="none")
