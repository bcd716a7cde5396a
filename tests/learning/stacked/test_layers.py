"""Layers of several clients: hand-worked numbers of both passes."""

from __future__ import annotations

import torch

from fedreuse.learning.stacked.layers import Flatten, Linear, Relu


def test_a_linear_layer_has_weights_of_its_own_for_every_client() -> None:
    weights = {"a.weight": torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]]), "a.bias": torch.tensor([[10.0], [20.0]])}
    gradients = {name: torch.zeros_like(values) for name, values in weights.items()}
    inputs = torch.tensor([[[1.0, 1.0], [2.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]])
    layer = Linear("a", has_bias=True)
    assert layer.forward(weights, inputs).tolist() == [[[13.0], [12.0]], [[24.0], [27.0]]]
    slopes = torch.tensor([[[1.0], [2.0]], [[1.0], [-1.0]]])
    assert layer.backward(weights, gradients, slopes, is_first=False).tolist() == [
        [[1.0, 2.0], [2.0, 4.0]],
        [[3.0, 4.0], [-3.0, -4.0]],
    ]
    assert gradients["a.weight"].tolist() == [[[5.0, 1.0]], [[-1.0, 0.0]]]
    assert gradients["a.bias"].tolist() == [[3.0], [0.0]]


def test_relu_passes_slopes_where_its_output_is_positive() -> None:
    layer = Relu()
    assert layer.forward({}, torch.tensor([[[-1.0, 0.0, 2.0]]])).tolist() == [[[0.0, 0.0, 2.0]]]
    assert layer.backward({}, {}, torch.tensor([[[5.0, 6.0, 7.0]]]), is_first=False).tolist() == [[[0.0, 0.0, 7.0]]]


def test_flatten_makes_a_row_of_every_example() -> None:
    inputs = torch.arange(24.0).reshape(2, 3, 2, 2)
    assert torch.equal(Flatten().forward({}, inputs), inputs.reshape(2, 3, 4))
