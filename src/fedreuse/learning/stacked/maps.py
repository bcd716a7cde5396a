"""Layers for images of several clients: grouped convolutions, GroupNorm and pooling, with passes written out.

A map is examples x (clients and their channels) x height x width in channels-last memory. There a convolution of narrow
layers with a group per client takes half the time of one convolution per client, and pooling a few per cent of its time
in other memory formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from fedreuse.learning.stacked.layers import Weights

__all__ = ["Convolution", "FlattenMap", "GroupNorm", "MaxPool", "ToMap"]

_aten = torch.ops.aten


class ToMap:
    """Images, clients x examples x channels x height x width, as a map."""

    def forward(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """Return the map."""
        del weights
        if inputs.dim() != 5:
            raise ValueError(f"images have 3 dimensions, not {inputs.dim() - 2}")
        return inputs.transpose(0, 1).flatten(1, 2).contiguous(memory_format=torch.channels_last)

    def backward(self, weights: Weights, gradients: Weights, slopes: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Return the slopes: nothing comes before."""
        del weights, gradients, is_first
        return slopes


class FlattenMap:
    """The values of every example of a map in one row: clients x examples x values.

    Args:
        any_weight: Name of a weight, whose first dimension is that of the clients.
    """

    def __init__(self, any_weight: str) -> None:
        self._any_weight = any_weight

    def forward(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """Return the rows."""
        inner = inputs.reshape(len(inputs), len(weights[self._any_weight]), -1, *inputs.shape[2:])
        self._shape = inner.shape[2:]
        return inner.transpose(0, 1).flatten(2)

    def backward(self, weights: Weights, gradients: Weights, slopes: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Return the slopes as a map."""
        del weights, gradients, is_first
        rows = slopes.reshape(*slopes.shape[:2], *self._shape).transpose(0, 1)
        return rows.flatten(1, 2).contiguous(memory_format=torch.channels_last)


class Convolution:
    """A convolution with a group for every client."""

    def __init__(self, name: str, layer: nn.Conv2d) -> None:
        self._name, self._layer = name, layer

    def forward(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs."""
        layer, weight = self._layer, weights[f"{self._name}.weight"]
        self._inputs, groups = inputs, layer.groups * len(weight)
        bias = None if layer.bias is None else weights[f"{self._name}.bias"].flatten()
        return functional.conv2d(
            inputs, weight.flatten(0, 1), bias, layer.stride, layer.padding, layer.dilation, groups
        )

    def backward(self, weights: Weights, gradients: Weights, slopes: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Write the gradients by weight and bias, and return those by the inputs."""
        layer, weight = self._layer, weights[f"{self._name}.weight"].flatten(0, 1)
        groups = layer.groups * len(weights[f"{self._name}.weight"])
        by_inputs, by_weight, by_bias = _aten.convolution_backward(
            slopes, self._inputs, weight, [len(weight)], layer.stride, layer.padding, layer.dilation, False, [0, 0],
            groups, [not is_first, True, layer.bias is not None],
        )  # fmt: skip
        gradients[f"{self._name}.weight"].flatten(0, 1).copy_(by_weight)
        if layer.bias is not None:
            gradients[f"{self._name}.bias"].flatten().copy_(by_bias)
        return slopes if is_first else by_inputs


class GroupNorm:
    """Normalisation over groups of channels of one example.

    It is computed on examples x pixels x channels: torch's own is four times as slow in channels-last memory.
    """

    def __init__(self, name: str, layer: nn.GroupNorm) -> None:
        self._name, self._epsilon = name, layer.eps
        self._per_group = layer.num_channels // layer.num_groups

    def forward(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs; the variance is that of centred values, which cancels nothing."""
        pixels = inputs.permute(0, 2, 3, 1).flatten(1, 2)
        self._centred = pixels - self._mean(pixels.sum(1, keepdim=True), pixels)
        self._inverse = (self._mean(self._centred.square().sum(1, keepdim=True), pixels) + self._epsilon).rsqrt_()
        scale, shift = weights[f"{self._name}.weight"].flatten(), weights[f"{self._name}.bias"].flatten()
        return self._as_map(torch.addcmul(shift, self._centred, self._inverse * scale), inputs)

    def backward(self, weights: Weights, gradients: Weights, slopes: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Write the gradients by scale and shift, and return those by the inputs."""
        del is_first
        pixels, scale = slopes.permute(0, 2, 3, 1).flatten(1, 2), weights[f"{self._name}.weight"].flatten()
        sums = pixels.sum(1, keepdim=True)
        products = (pixels * self._centred).sum(1, keepdim=True).mul_(self._inverse)
        gradients[f"{self._name}.weight"].flatten().copy_(products.sum((0, 1)))
        gradients[f"{self._name}.bias"].flatten().copy_(sums.sum((0, 1)))
        along = self._mean(products * scale, pixels) * self._inverse.square()
        found = torch.addcmul(-self._mean(sums * scale, pixels) * self._inverse, pixels, scale * self._inverse)
        return self._as_map(found.addcmul_(self._centred, -along), slopes)

    def _mean(self, sums: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
        """Return the mean over pixels and channels of each group, for every channel, given sums over the pixels."""
        by_group = sums.view(len(sums), 1, -1, self._per_group)
        total = by_group.sum(3, keepdim=True) / (pixels.shape[1] * self._per_group)
        return total.expand(-1, -1, -1, self._per_group).flatten(2)

    @staticmethod
    def _as_map(pixels: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return pixels.view(len(like), *like.shape[2:], -1).permute(0, 3, 1, 2)


class MaxPool:
    """The largest value of each window; channels do not mix, so clients do not either."""

    def __init__(self, layer: nn.MaxPool2d) -> None:
        both = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        self._settings = [[one, one] if isinstance(one, int) else list(one) for one in both]
        self._is_ceiled = layer.ceil_mode

    def forward(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs."""
        del weights
        self._inputs = inputs
        outputs, self._places = _aten.max_pool2d_with_indices(inputs, *self._settings, self._is_ceiled)
        return outputs  # type: ignore[no-any-return]  # torch leaves it untyped

    def backward(self, weights: Weights, gradients: Weights, slopes: torch.Tensor, is_first: bool) -> torch.Tensor:
        """Return the slopes at the places of the largest values."""
        del weights, gradients, is_first
        return _aten.max_pool2d_with_indices_backward(  # type: ignore[no-any-return]
            slopes, self._inputs, *self._settings, self._is_ceiled, self._places
        )
