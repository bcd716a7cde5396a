"""Root mean squared error."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from fedreuse.learning.metrics.metric import Metric, metrics
from fedreuse.learning.metrics.sums import mean_error, sums
from fedreuse.learning.targets import aligned

if TYPE_CHECKING:
    import torch

    from fedreuse.core.metrics import State

__all__ = ["Rmse"]


@metrics.register("rmse")
@dataclass(frozen=True)
class Rmse(Metric):
    """Root mean squared error of predicted numbers, in the unit of the labels; the mean over several outputs.

    Lower is better, so it is reported but cannot be `task.metric`; `r2` can.

    Example: `task: {loss: squared_error, metric: r2, metrics: [rmse]}`.
    """

    can_select = False
    instead = "take r2, and report this under task.metrics"
    label_kinds = ("numbers",)

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> State:
        """Return the sum per output."""
        outputs, labels = aligned(outputs, labels)
        return sums((outputs - labels).double().square())

    def value(self, state: State, examples: int) -> float:
        """Return the mean over outputs."""
        return mean_error(state, examples, sqrt)
