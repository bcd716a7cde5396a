"""Area under the ROC curve, from histograms of the predicted probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from fedreuse.core.errors import require
from fedreuse.learning.metrics.metric import Metric, metrics
from fedreuse.learning.targets import kind_of

if TYPE_CHECKING:
    from fedreuse.core.metrics import State

__all__ = ["Auc"]


@metrics.register("auc")
@dataclass(frozen=True)
class Auc(Metric):
    """Area under the ROC curve, in [0, 1]; with more than two classes the mean over classes, each against the rest.

    Probabilities are counted in bins of equal width, so that states are small and add up; examples in one bin are ties.
    Classes that all or none of the examples have are left out. With flags, each flag is a class.

    Args:
        bins: Number of bins of the probability, at least 2 and at most 256.

    Example: `task: {metrics: [{name: auc, bins: 200}]}`.
    """

    bins: int = 100

    label_kinds = ("classes", "flags")
    is_share = True

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(2 <= self.bins <= 256, "task.metrics.auc.bins must be from 2 to 256", self.bins)

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> State:
        """Return two histograms of the probability per class (the second of two): of its own and of other examples."""
        if kind_of(labels) == "flags":
            levels = (torch.sigmoid(outputs.double()) * self.bins).long().clamp(0, self.bins - 1)
            return tuple(
                (self._count(levels[labels[:, flag], flag]), self._count(levels[~labels[:, flag], flag]))
                for flag in range(outputs.shape[1])
            )
        bins = (torch.softmax(outputs.double(), 1) * self.bins).long().clamp(0, self.bins - 1)
        classes = range(1 if outputs.shape[1] == 2 else 0, outputs.shape[1])
        return tuple((self._count(bins[labels == k, k]), self._count(bins[labels != k, k])) for k in classes)

    def _count(self, bins: torch.Tensor) -> tuple[int, ...]:
        return tuple(torch.bincount(bins, minlength=self.bins).tolist())

    def value(self, state: State, examples: int) -> float:
        """Return the mean over classes that some but not all examples have; nan without such a class."""
        from sklearn.metrics import roc_auc_score  # slow to import (a second), and most runs do not need it

        del examples
        histograms: Any = state
        truth, levels = [1] * self.bins + [0] * self.bins, [*range(self.bins)] * 2
        areas = [
            float(roc_auc_score(truth, levels, sample_weight=[*own, *others]))
            for own, others in histograms
            if any(own) and any(others)
        ]
        return sum(areas) / len(areas) if areas else float("nan")
