"""Share of the variance that predicted numbers explain."""

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
    """R^2 = 1 - sum of squared errors / sum of squares around the mean, of the examples that are evaluated.

    1 is perfect, 0 as good as their mean, below 0 worse. With several outputs the mean over those that vary; nan if
    none does.

    Example: `task: {loss: squared_error, metric: r2, metrics: [rmse, mae]}`.
    """

    label_kinds = ("numbers",)

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> State:
        """Per output: squared errors, labels, squared labels."""
        outputs, labels = (one.double() for one in aligned(outputs, labels))
        return sums((outputs - labels).square(), labels, labels.square())

    def value(self, state: State, examples: int) -> float:
        """The mean over outputs."""
        held: Any = state if examples else ((), (), ())
        spreads = [(wrong, squares - total * total / examples) for wrong, total, squares in zip(*held, strict=True)]
        found = [1 - wrong / spread for wrong, spread in spreads if spread > 0]
        return sum(found) / len(found) if found else float("nan")
