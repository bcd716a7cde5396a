"""Share of right answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.learning.metrics.metric import Metric, metrics
from fedreuse.learning.targets import counted, kind_of

if TYPE_CHECKING:
    import torch

__all__ = ["Accuracy"]


@metrics.register("accuracy")
@dataclass(frozen=True)
class Accuracy(Metric):
    """Share of examples (or tokens that count) whose highest score is at the right class; of flags, all right at once.

    A flag is predicted where its score is above 0.

    Example: `task: {metric: accuracy}`.
    """

    label_kinds = ("classes", "tokens", "flags")
    is_share = True

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        """Number of right answers."""
        if kind_of(labels) == "flags":
            return float(((outputs > 0) == labels).all(1).sum())
        outputs, labels = counted(outputs, labels)
        return float((outputs.argmax(1) == labels).sum())
