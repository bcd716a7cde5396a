"""Mean cross-entropy of class scores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from fedreuse.core.errors import require
from fedreuse.learning.losses.loss import Loss, losses
from fedreuse.learning.targets import IGNORED, kind_of

__all__ = ["CrossEntropy"]


@losses.register("cross_entropy")
@dataclass(frozen=True)
class CrossEntropy(Loss):
    """Mean cross-entropy of class scores, over examples or over tokens.

    With one class per token, scores are N x length x classes, and tokens with the label -100 (padding) do not count.

    Args:
        label_smoothing: Share of the target distributed evenly over all classes, in [0, 1).

    Example: `task: {loss: {name: cross_entropy, label_smoothing: 0.1}}`.
    """

    label_smoothing: float = 0.0

    label_kinds = ("classes", "tokens")

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 <= self.label_smoothing < 1, "task.loss.label_smoothing must be in [0, 1)", self.label_smoothing)

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the mean over the examples, or tokens that count, of a batch."""
        return self._loss(outputs, labels, "mean")

    def terms(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of every example or token; 0 for those that do not count."""
        return self._loss(outputs, labels, "none").view(labels.shape)

    def slopes(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return softmax minus target, by its own operations: torch's kernel is slow for few classes."""
        if outputs.shape[:-1] != labels.shape:  # classes are not the last dimension
            return super().slopes(outputs, labels)
        slopes = torch.exp(outputs.detach() - outputs.detach().amax(-1, keepdim=True))
        slopes /= slopes.sum(-1, keepdim=True)
        share = torch.full((1,), self.label_smoothing - 1, dtype=slopes.dtype, device=slopes.device)
        slopes.scatter_add_(-1, labels.clamp(min=0).unsqueeze(-1), share.expand(*labels.shape, 1))
        if self.label_smoothing:
            slopes -= self.label_smoothing / slopes.shape[-1]
        return slopes.mul_((labels != IGNORED).unsqueeze(-1))

    def _loss(self, outputs: torch.Tensor, labels: torch.Tensor, reduction: str) -> torch.Tensor:
        if kind_of(labels) == "tokens" and outputs.shape[:-1] == labels.shape:
            outputs, labels = outputs.flatten(0, -2), labels.flatten()
        return functional.cross_entropy(outputs, labels, label_smoothing=self.label_smoothing, reduction=reduction)
