"""Perplexity: the number of equally likely tokens with the same uncertainty."""

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

_LARGEST = 700.0  # exp of more overflows


@metrics.register("perplexity")
@dataclass(frozen=True)
class Perplexity(Metric):
    """Exponential of the mean negative log-likelihood per token that counts, at least 1, which is perfect.

    Lower is better, so it is reported but cannot be `task.metric`; `log_likelihood`, which ranks models alike, can.

    Example: `task: {metric: log_likelihood, metrics: [perplexity]}`.
    """

    can_select = False
    instead = "take log_likelihood, which ranks models alike, and report this under task.metrics"
    label_kinds = ("classes", "tokens")

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        """Return the sum of the log-likelihoods."""
        return LogLikelihood()(outputs, labels)

    def value(self, state: State, examples: int) -> float:
        """Return exp(-mean)."""
        mean = -super().value(state, examples)
        return inf if mean > _LARGEST else exp(mean)
