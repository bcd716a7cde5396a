"""Perplexity: over how many equally likely tokens a model is in doubt."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf
from typing import TYPE_CHECKING

from fedreuse.learning.metrics.log_likelihood import LogLikelihood
from fedreuse.learning.metrics.metric import Metric, metrics

if TYPE_CHECKING:
    import torch

    from fedreuse.core.metrics import State

__all__ = ["Perplexity"]

_LARGEST = 700.0  # exp of more is no number


@metrics.register("perplexity")
@dataclass(frozen=True)
class Perplexity(Metric):
    """exp of the mean negative log-likelihood per token that counts; 1 is perfect, less is better.

    It is reported, and cannot select: `log_likelihood` does, in the same order.

    Example: `task: {metric: log_likelihood, metrics: [perplexity]}`.
    """

    can_select = False
    instead = "take log_likelihood, which orders models alike, and report this under task.metrics"
    label_kinds = ("classes", "tokens")

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        """Sum of the log-likelihoods."""
        return LogLikelihood()(outputs, labels)

    def value(self, state: State, examples: int) -> float:
        """exp(-mean)."""
        mean = -super().value(state, examples)
        return inf if mean > _LARGEST else exp(mean)
