"""What is minimised and what is reported: losses and metrics, one's own by `package.module:name`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.nn import functional

from fedreuse.core.errors import require
from fedreuse.core.registry import Registry

__all__ = ["Accuracy", "CrossEntropy", "Loss", "Metric", "losses", "metrics"]


class Loss(Protocol):
    """Mean loss of a batch."""

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """A scalar tensor to differentiate."""
        ...


class Metric(Protocol):
    """Sum over a batch of what is reported per example."""

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        """A sum, so that batches can be added."""
        ...


@dataclass(frozen=True)
class _Own:
    """A user's function under its own name."""

    target: Callable[..., Any]
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> Any:
        """The user's function with the configured options."""
        return self.target(outputs, labels, **self.options)

    def to_plain(self) -> dict[str, Any]:
        """The options alone; the registry writes the name."""
        return dict(self.options)


losses: Registry[Loss] = Registry("losses", "fedreuse.learning.objectives", adapt=_Own)
metrics: Registry[Metric] = Registry("metrics", "fedreuse.learning.objectives", adapt=_Own)


@losses.register("cross_entropy")
@dataclass(frozen=True)
class CrossEntropy:
    """Mean cross-entropy of class scores."""

    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 <= self.label_smoothing < 1, "task.loss.label_smoothing must be in [0, 1)", self.label_smoothing)

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Mean over the batch."""
        return functional.cross_entropy(outputs, labels, label_smoothing=self.label_smoothing)


@metrics.register("accuracy")
@dataclass(frozen=True)
class Accuracy:
    """Share of examples whose highest score is at the right class."""

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        """Number of right answers."""
        return float((outputs.argmax(1) == labels).sum())
