"""Share of correct predictions."""

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
    """Share of examples (or tokens that count) whose highest score is that of the true class, in [0, 1].

    With flags, an example counts if all its flags are correct; a flag is predicted if its score is above 0.

    Example: `task: {metric: accuracy}`.
    """

    label_kinds = ("classes", "tokens", "flags")
    is_share = True

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        """Return the number of correct predictions."""
        if kind_of(labels) == "flags":
            return float(((outputs > 0) == labels).all(1).sum())
        outputs, labels = counted(outputs, labels)
        return float((outputs.argmax(1) == labels).sum())
