"""Fully connected networks of several clients as batched products, without autograd and `vmap`.

For networks this small the bookkeeping of a graph takes longer than the products. Forward and backward pass of linear
layers and ReLU are a few lines, so they are written out; gradients go straight to their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FullyConnected"]


class FullyConnected:
    """Linear layers with or without ReLU between them, for stacked weights (clients x shape).

    Args:
        layers: Name of each linear layer, whether it has a bias, and whether ReLU follows.
    """

    def __init__(self, layers: list[tuple[str, bool, bool]]) -> None:
        """Start without activations."""
        self._layers = layers
        self._inputs: list[torch.Tensor] = []

    @classmethod
    def of(cls, module: nn.Module) -> FullyConnected | None:
        """Return the layers of a module; None if it is anything else than linear layers and ReLU in a sequence."""
        layers: list[tuple[str, bool, bool]] = []
        if type(module) is not nn.Sequential or any(not weight.requires_grad for weight in module.parameters()):
            return None
        for name, layer in module.named_children():
            if layer._forward_hooks or layer._forward_pre_hooks:
                return None
            if type(layer) is nn.Linear:
                layers.append((name, layer.bias is not None, False))
            elif type(layer) is nn.ReLU and layers:
                layers[-1] = *layers[-1][:2], True
            elif type(layer) is not nn.Flatten or layers or (layer.start_dim, layer.end_dim) != (1, -1):
                return None
        return cls(layers) if layers else None

    def forward(self, weights: Mapping[str, torch.Tensor], inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs (clients x examples x outputs), and keep what `backward` needs."""
        hidden, self._inputs = inputs.flatten(2), []
        for name, has_bias, is_rectified in self._layers:
            self._inputs.append(hidden)
            weight = weights[f"{name}.weight"].transpose(1, 2)
            if has_bias:
                hidden = torch.baddbmm(weights[f"{name}.bias"].unsqueeze(1), hidden, weight)
            else:
                hidden = torch.bmm(hidden, weight)
            if is_rectified:
                hidden = hidden.relu_()
        self._inputs.append(hidden)
        return hidden

    def backward(
        self, weights: Mapping[str, torch.Tensor], gradients: Mapping[str, torch.Tensor], slopes: torch.Tensor
    ) -> None:
        """Write the gradients of the last `forward`; `slopes` are the derivatives of the loss by the outputs."""
        for at in reversed(range(len(self._layers))):
            name, has_bias, is_rectified = self._layers[at]
            if is_rectified:
                slopes = slopes * (self._inputs[at + 1] > 0)
            torch.bmm(slopes.transpose(1, 2), self._inputs[at], out=gradients[f"{name}.weight"])
            if has_bias:
                torch.sum(slopes, 1, out=gradients[f"{name}.bias"])
            if at:
                slopes = torch.bmm(slopes, weights[f"{name}.weight"])
