"""F1 over all decisions at once."""

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
    """F1 = 2 right / (predicted + true) over the flags of all labels together; frequent labels count for more.

    Of classes, where every example has one, this is the accuracy.

    Example: `task: {loss: binary_cross_entropy, metric: micro_f1, metrics: [macro_f1]}`.
    """

    label_kinds = ("classes", "tokens", "flags")
    is_share = True

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> State:
        """How often a label was right, predicted, and true."""
        counts: Any = MacroF1()(outputs, labels)
        return tuple(sum(one) for one in counts)

    def value(self, state: State, examples: int) -> float:
        """F1 of the sums."""
        held: Any = state if examples else (0, 0, 0)
        right, predicted, true = held
        return 2 * right / (predicted + true) if predicted + true else float("nan")
