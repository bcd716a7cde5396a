"""What a loss is: the mean over a batch; one's own by `package.module:name`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fedreuse.core.registry import Registry
from fedreuse.learning.own_function import OwnFunction

if TYPE_CHECKING:
    import torch

__all__ = ["Loss", "losses"]


class Loss(Protocol):
    """Mean loss of a batch."""

    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """A scalar tensor to differentiate."""
        ...


losses: Registry[Loss] = Registry("losses", "fedreuse.learning.losses", adapt=OwnFunction)
