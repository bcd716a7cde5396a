"""A fully connected network without normalisation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod

from torch import nn

from fedreuse.core.errors import require
from fedreuse.learning.networks.network import Network, networks

__all__ = ["Mlp"]


@networks.register("mlp")
@dataclass(frozen=True)
class Mlp(Network):
    """Fully connected layers with ReLU between them, for inputs of any shape; the last layer is named `fc`.

    Args:
        hidden: Units of each hidden layer, at least 1; an empty list is a linear classifier.

    Example: `network: {name: mlp, hidden: [64, 32]}`.
    """

    hidden: tuple[int, ...] = (96,)

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(all(units >= 1 for units in self.hidden), "network.hidden must be positive numbers", self.hidden)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build a module that flattens its input."""
        sizes = [prod(shape), *self.hidden]
        layers = nn.Sequential()
        layers.add_module("flatten", nn.Flatten())
        for number, (before, after) in enumerate(pairwise(sizes), start=1):
            layers.add_module(f"hidden{number}", nn.Linear(before, after))
            layers.add_module(f"relu{number}", nn.ReLU())
        layers.add_module("fc", nn.Linear(sizes[-1], num_classes))
        return layers
