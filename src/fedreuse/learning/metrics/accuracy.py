"""Share of right answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.learning.metrics.metric import Metric, metrics

if TYPE_CHECKING:
    import torch

__all__ = ["Accuracy"]


@metrics.register("accuracy")
@dataclass(frozen=True)
class Accuracy(Metric):
    """Share of examples whose highest score is at the right class.

    Example: `task: {metric: accuracy}`.
    """

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        """Number of right answers."""
        return float((outputs.argmax(1) == labels).sum())
