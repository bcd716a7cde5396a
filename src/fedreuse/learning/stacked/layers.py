"""Fully connected layers of several clients: forward and backward pass written out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch

__all__ = ["Flatten", "Layer", "Linear", "Relu", "Weights"]

Weights = Mapping[str, torch.Tensor]
"""Weights of several clients by name: clients x shape."""


class Layer(Protocol):
    """A layer that keeps what its backward pass needs."""

    def forward(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs; inputs and outputs begin with clients."""

    def backward(self, weights: Weights, gradients: Weights, slopes: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Write the gradients by the weights, and return those by the inputs; the first layer may return anything."""


class Linear:
    """A linear layer: clients x examples x inputs to clients x examples x outputs."""

    def __init__(self, name: str, has_bias: bool) -> None:
        self._name, self._has_bias = name, has_bias

    def forward(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs."""
        self._inputs = inputs
        weight = weights[f"{self._name}.weight"].transpose(1, 2)
        if self._has_bias:
            return torch.baddbmm(weights[f"{self._name}.bias"].unsqueeze(1), inputs, weight)
        return torch.bmm(inputs, weight)

    def backward(self, weights: Weights, gradients: Weights, slopes: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Write the gradients by weight and bias."""
        torch.bmm(slopes.transpose(1, 2), self._inputs, out=gradients[f"{self._name}.weight"])
        if self._has_bias:
            torch.sum(slopes, 1, out=gradients[f"{self._name}.bias"])
        return slopes if is_first else torch.bmm(slopes, weights[f"{self._name}.weight"])


class Relu:
    """ReLU, in place: no layer before it reads its own outputs again."""

    def forward(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs."""
        del weights
        self._outputs = inputs.relu_()
        return self._outputs

    def backward(self, weights: Weights, gradients: Weights, slopes: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Return the slopes where the output is positive."""
        del weights, gradients, is_first
        # several times as fast as a product with truth values
        return torch.ops.aten.threshold_backward(slopes, self._outputs, 0)  # type: ignore[no-any-return]


class Flatten:
    """The values of an example in one row: clients x examples x values."""

    def forward(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """Return the rows."""
        del weights
        return inputs.flatten(2)

    def backward(self, weights: Weights, gradients: Weights, slopes: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Return the slopes: nothing comes before."""
        del weights, gradients, is_first
        return slopes
