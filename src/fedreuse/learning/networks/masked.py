"""A network whose weights are random and stay so; scores are trained that decide which of them are used."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils import parametrize

from fedreuse.core.errors import ConfigError
from fedreuse.core.registry import part
from fedreuse.learning.networks.network import Network, networks

__all__ = ["Masked"]


@networks.register("masked")
@dataclass(frozen=True)
class Masked(Network):
    """Random masks over the frozen initial weights of another network; their scores are the model (for `fedpm`).

    Weights with two or more dimensions become signs of their initial values times sqrt(2 / fan-in). In training, each
    is used with probability sigmoid(score), and gradients pass through the draw; in evaluation the draws are fixed, so
    that the deployed network is a mask of one bit per weight. Other weights keep their initial values.

    Args:
        of: The network.

    Raises:
        ConfigError: The network has no weight with two or more dimensions.

    Example: `network: {name: masked, of: {name: cnn, width: 16}}`.
    """

    of: Network = part(networks)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the other network with frozen weights, and scores of 0."""
        module = self.of.build(shape, num_classes)
        for weight in module.parameters():
            weight.requires_grad_(False)
        chosen = [
            (layer, name)
            for layer in list(module.modules())
            for name, weight in layer.named_parameters(recurse=False)
            if weight.dim() > 1
        ]
        if not chosen:
            raise ConfigError(f"network.of: {type(module).__name__} has no weight with two dimensions to mask")
        for layer, name in chosen:
            weight = getattr(layer, name)
            values = weight.data.sign() * (2 / weight[0].numel()) ** 0.5
            parametrize.register_parametrization(layer, name, _Draw(values), unsafe=True)
            scores = layer.get_parameter(f"parametrizations.{name}.original")
            scores.data = torch.zeros_like(values)
            scores.requires_grad_(True)
        return module


class _Draw(nn.Module):
    """Weights times a mask, drawn from scores."""

    fixed: torch.Tensor

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__()
        self.values = nn.Parameter(values, requires_grad=False)
        self.register_buffer("fixed", torch.rand_like(values), persistent=False)

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the masked weights."""
        chance = torch.sigmoid(scores)
        drawn = (torch.rand_like(chance) if self.training else self.fixed) < chance
        return self.values * (drawn.to(chance.dtype) - chance.detach() + chance)
