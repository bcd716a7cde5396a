"""Mean binary cross-entropy of independent flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch.nn import functional

from fedreuse.core.errors import require
from fedreuse.learning.losses.loss import Loss, losses

if TYPE_CHECKING:
    import torch

__all__ = ["BinaryCrossEntropy"]


@losses.register("binary_cross_entropy")
@dataclass(frozen=True)
class BinaryCrossEntropy(Loss):
    """Mean binary cross-entropy over examples and flags (multi-label classification); outputs are log-odds.

    Args:
        positive_weight: Factor on the loss of flags that are set, above 0; use more than 1 if few are set.

    Example: `task: {loss: {name: binary_cross_entropy, positive_weight: 3.0}, metric: macro_f1}`.
    """

    positive_weight: float = 1.0

    label_kinds = ("flags",)

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.positive_weight > 0, "task.loss.positive_weight must be above 0", self.positive_weight)

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the mean over the batch."""
        return self._loss(outputs, labels, "mean")

    def terms(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of every flag."""
        return self._loss(outputs, labels, "none")

    def _loss(self, outputs: torch.Tensor, labels: torch.Tensor, reduction: str) -> torch.Tensor:
        weight = outputs.new_tensor(self.positive_weight)
        return functional.binary_cross_entropy_with_logits(
            outputs, labels.to(outputs.dtype), pos_weight=weight, reduction=reduction
        )
