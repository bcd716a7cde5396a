"""Mean log-likelihood of the true classes, which selects language models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch.nn import functional

from fedreuse.learning.metrics.metric import Metric, metrics
from fedreuse.learning.targets import counted

if TYPE_CHECKING:
    import torch

__all__ = ["LogLikelihood"]


@metrics.register("log_likelihood")
@dataclass(frozen=True)
class LogLikelihood(Metric):
    """Mean log-likelihood of the true classes in nats, over examples or tokens that count; at most 0, which is perfect.

    It ranks models as perplexity, exp(-value), does; higher is better, so it can be `task.metric`.

    Example: `task: {metric: log_likelihood, metrics: [perplexity]}`.
    """

    label_kinds = ("classes", "tokens")

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        """Return the sum over the batch, in double precision."""
        outputs, labels = counted(outputs, labels)
        return -float(functional.cross_entropy(outputs.double(), labels, reduction="sum"))
