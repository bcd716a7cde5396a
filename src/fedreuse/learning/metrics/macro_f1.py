"""F1 of every class, averaged over classes."""

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
    """Mean over classes of F1 = 2 right / (predicted + true); classes that are neither predicted nor true are left out.

    Where labels are flags, each is a class that is predicted where its score is above 0.

    Example: `task: {metrics: [macro_f1]}`.
    """

    label_kinds = ("classes", "tokens", "flags")
    is_share = True

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> State:
        """Of each class: how often it was right, predicted, and true."""
        if kind_of(labels) == "flags":
            said = outputs > 0
            return tuple(tuple(one.sum(0).tolist()) for one in (said & labels, said, labels))
        outputs, labels = counted(outputs, labels)
        predicted, size = outputs.argmax(1), outputs.shape[1]
        found = (labels[predicted == labels], predicted, labels)
        return tuple(tuple(torch.bincount(some, minlength=size).tolist()) for some in found)

    def value(self, state: State, examples: int) -> float:
        """The mean of the classes' F1."""
        del examples
        counts: Any = state
        found = [
            2 * right / (predicted + true) for right, predicted, true in zip(*counts, strict=True) if predicted + true
        ]
        return sum(found) / len(found) if found else float("nan")
