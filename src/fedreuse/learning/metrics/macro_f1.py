"""Mean F1 over classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from fedreuse.learning.metrics.metric import Metric, metrics
from fedreuse.learning.targets import counted, kind_of

if TYPE_CHECKING:
    from fedreuse.core.metrics import State

__all__ = ["MacroF1"]


@metrics.register("macro_f1")
@dataclass(frozen=True)
class MacroF1(Metric):
    """Mean over classes of F1 = 2 correct / (predicted + true), in [0, 1].

    Classes that are neither predicted nor true are left out. With flags, each flag is a class, predicted if its score
    is above 0.

    Example: `task: {metrics: [macro_f1]}`.
    """

    label_kinds = ("classes", "tokens", "flags")
    is_share = True

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> State:
        """Return three counts per class: correct predictions, predictions, and examples."""
        if kind_of(labels) == "flags":
            predicted = outputs > 0
            return tuple(tuple(part.sum(0).tolist()) for part in (predicted & labels, predicted, labels))
        outputs, labels = counted(outputs, labels)
        predicted, size = outputs.argmax(1), outputs.shape[1]
        counted_classes = (labels[predicted == labels], predicted, labels)
        return tuple(tuple(torch.bincount(part, minlength=size).tolist()) for part in counted_classes)

    def value(self, state: State, examples: int) -> float:
        """Return the mean F1 of the classes; nan if there is none."""
        del examples
        counts: Any = state
        scores = [
            2 * correct / (predicted + true)
            for correct, predicted, true in zip(*counts, strict=True)
            if predicted + true
        ]
        return sum(scores) / len(scores) if scores else float("nan")
