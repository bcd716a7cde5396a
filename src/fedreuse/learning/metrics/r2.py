"""Share of the variance explained by the predicted numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.learning.metrics.metric import Metric, metrics
from fedreuse.learning.metrics.sums import sums
from fedreuse.learning.targets import aligned

if TYPE_CHECKING:
    import torch

    from fedreuse.core.metrics import State

__all__ = ["R2"]


@metrics.register("r2")
@dataclass(frozen=True)
class R2(Metric):
    """R^2 = 1 - sum of squared errors / sum of squares around the mean, of the evaluated examples; at most 1.

    1 is perfect, 0 is as good as predicting the mean. With several outputs, the mean over those that vary; nan if none
    does.

    Example: `task: {loss: squared_error, metric: r2, metrics: [rmse, mae]}`.
    """

    label_kinds = ("numbers",)

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> State:
        """Return three sums per output: of squared errors, labels, and squared labels."""
        outputs, labels = (part.double() for part in aligned(outputs, labels))
        return sums((outputs - labels).square(), labels, labels.square())

    def value(self, state: State, examples: int) -> float:
        """Return the mean over outputs that vary."""
        held: Any = state if examples else ((), (), ())
        pairs = [(errors, squares - total * total / examples) for errors, total, squares in zip(*held, strict=True)]
        scores = [1 - errors / variation for errors, variation in pairs if variation > 0]
        return sum(scores) / len(scores) if scores else float("nan")
