"""F1 over the decisions of all classes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.learning.metrics.macro_f1 import MacroF1
from fedreuse.learning.metrics.metric import Metric, metrics

if TYPE_CHECKING:
    import torch

    from fedreuse.core.metrics import State

__all__ = ["MicroF1"]


@metrics.register("micro_f1")
@dataclass(frozen=True)
class MicroF1(Metric):
    """F1 = 2 correct / (predicted + true) over all flags together, in [0, 1]; frequent flags count for more.

    With one class per example this is the accuracy.

    Example: `task: {loss: binary_cross_entropy, metric: micro_f1, metrics: [macro_f1]}`.
    """

    label_kinds = ("classes", "tokens", "flags")
    is_share = True

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> State:
        """Return the numbers of correct predictions, predictions, and true flags."""
        counts: Any = MacroF1()(outputs, labels)
        return tuple(sum(per_class) for per_class in counts)

    def value(self, state: State, examples: int) -> float:
        """Return F1 of the sums; nan without any."""
        held: Any = state if examples else (0, 0, 0)
        correct, predicted, true = held
        return 2 * correct / (predicted + true) if predicted + true else float("nan")
