"""Layers for images of several clients: each gives what torch's own layer gives for every client alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fedreuse.learning.stacked.maps import Convolution, FlattenMap, GroupNorm, MaxPool, ToMap

CLIENTS, EXAMPLES = 3, 2
LAYERS = {
    "convolution": (nn.Conv2d(2, 4, 3, stride=2, padding=1), Convolution),
    "convolution without bias": (nn.Conv2d(2, 4, 3, bias=False), Convolution),
    "norm": (nn.GroupNorm(1, 2), GroupNorm),
    "pool": (nn.MaxPool2d(2), lambda _, module: MaxPool(module)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_both_passes_are_those_of_each_client_alone(name: str) -> None:
    module, make = LAYERS[name]
    rng = torch.Generator().manual_seed(5)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=rng)

    weights = {f"a.{part}": drawn(CLIENTS, *values.shape) for part, values in module.named_parameters()}
    gradients = {part: torch.zeros_like(values) for part, values in weights.items()}
    images, to_map, layer = drawn(CLIENTS, EXAMPLES, 2, 6, 6), ToMap(), make("a", module)
    found = layer.forward(weights, to_map.forward(weights, images))
    slopes = drawn(*found.shape).contiguous(memory_format=torch.channels_last)
    by_inputs = layer.backward(weights, gradients, slopes, is_first=False)
    for client in range(CLIENTS):
        own: dict[str, Any] = {part[2:]: values[client].clone().requires_grad_() for part, values in weights.items()}
        inputs = images[client].clone().requires_grad_()
        alone = torch.func.functional_call(module, own, (inputs,))
        channels = slice(client * alone.shape[1], (client + 1) * alone.shape[1])
        torch.testing.assert_close(found[:, channels], alone)
        alone.backward(slopes[:, channels])
        torch.testing.assert_close(by_inputs[:, 2 * client : 2 * client + 2], inputs.grad)
        for part, values in own.items():
            torch.testing.assert_close(gradients[f"a.{part}"][client], values.grad)


def test_a_map_is_flattened_by_client_and_example() -> None:
    images, weights = torch.arange(48.0).reshape(2, 3, 2, 2, 2), {"a": torch.zeros(2, 1)}
    layer = FlattenMap("a")
    rows = layer.forward(weights, ToMap().forward(weights, images))
    assert torch.equal(rows, images.reshape(2, 3, 8))
    assert torch.equal(layer.backward(weights, {}, rows, is_first=False), ToMap().forward(weights, images))


def test_images_have_three_dimensions() -> None:
    with pytest.raises(ValueError, match="images have 3 dimensions, not 1"):
        ToMap().forward({}, torch.zeros(2, 3, 4))
