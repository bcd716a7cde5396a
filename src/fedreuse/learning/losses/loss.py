"""What a loss is: the mean over a batch; one's own by `package.module:name`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.registry import Registry
from fedreuse.learning.own_function import OwnFunction

if TYPE_CHECKING:
    import torch

__all__ = ["Loss", "losses"]


class Loss(ABC):
    """Mean loss of a batch."""

    @abstractmethod
    def __call__(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """A scalar tensor to differentiate."""


@dataclass(frozen=True)
class OwnLoss(OwnFunction, Loss):
    """A user's function of outputs and labels that returns the mean loss of a batch."""


losses: Registry[Loss] = Registry("losses", "fedreuse.learning.losses", adapt=OwnLoss, base=Loss)
