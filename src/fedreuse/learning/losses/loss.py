"""The base class of losses; custom ones are named `package.module:name`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import Registry
from fedreuse.learning.own_function import OwnFunction

if TYPE_CHECKING:
    import torch

__all__ = ["Loss", "losses"]


class Loss(ABC):
    """Base class of losses: frozen dataclasses that return the mean loss of a batch.

    The class variable `label_kinds` names the kinds of labels that a loss is for; without it, all.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Hinge(Loss):
        ...     label_kinds = ("numbers",)
        ...     def __call__(self, outputs, labels):
        ...         return (1 - outputs * labels).clamp(min=0).mean()
    """

    @abstractmethod
    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return a scalar tensor to differentiate."""

    def terms(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of each label, of the shape of the labels, whose mean is the loss of the batch.

        Labels that do not count have the loss 0. Optional: without it clients train one by one (`local.together`).
        """
        raise NotImplementedError(f"loss {type(self).__name__} has no terms")

    def slopes(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the derivative of the sum of `terms` by the outputs; a closed form may replace autograd."""
        leaf = outputs.detach().requires_grad_()
        self.terms(leaf, labels).sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        assert leaf.grad is not None
        return leaf.grad


@dataclass(frozen=True)
class OwnLoss(OwnFunction, Loss):
    """A custom function of outputs and labels that returns the mean loss of a batch."""

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of a batch.

        Raises:
            ConfigError: The function returns something else than one number as a tensor.
        """
        value: torch.Tensor = super().__call__(outputs, labels)
        if not hasattr(value, "backward"):  # a tensor of any kind, without an import of torch
            raise ConfigError(f"loss {self.name} returns {type(value).__name__}; a tensor to differentiate is needed")
        if value.numel() != 1:
            raise ConfigError(
                f"loss {self.name} returns {value.numel()} numbers for a batch; one is needed, such as their mean()"
            )
        return value


losses: Registry[Loss] = Registry("losses", "fedreuse.learning.losses", adapt=OwnLoss, base=Loss)
