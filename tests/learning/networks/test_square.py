"""Square adapters: the function by hand, exact averages, and sizes that do not depend on the layer's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.flat_network import FlatNetwork
from fedreuse.learning.networks.mlp import Mlp
from fedreuse.learning.networks.network import OwnNetwork
from fedreuse.learning.networks.square import Square
from fedreuse.learning.trainer import initial_network


def build(rank: int = 2, **options: object) -> FlatNetwork:
    return initial_network(Square(Mlp((6, 5)), rank, **options), (8,), 3, seed=0)  # type: ignore[arg-type]


def test_it_starts_as_the_other_network_and_trains_rank_squared_numbers() -> None:
    plain, adapted, inputs = initial_network(Mlp((6, 5)), (8,), 3, seed=0), build(), torch.randn(4, 8)
    assert adapted.schema.weights.size == 3 * 2 * 2  # three layers
    torch.testing.assert_close(adapted.module(inputs), plain.module(inputs), rtol=0, atol=0)


def test_the_adapter_by_hand() -> None:
    # W = diag(3, 2): B = A' = I up to signs that cancel; R adds alpha R to W
    layer = torch.nn.Linear(2, 2, bias=False)
    layer.weight.data = torch.diag(torch.tensor([3.0, 2.0]))
    module = torch.nn.Sequential(layer, torch.nn.Linear(2, 1))
    module.head_layers = ("1",)  # type: ignore[assignment]
    adapted = Square(OwnNetwork(lambda: module, "two"), rank=2, alpha=0.5).build((2,), 1)
    adapted[0].r.data = torch.diag(torch.tensor([4.0, 8.0]))  # type: ignore[index,union-attr]
    outputs = adapted[0](torch.tensor([[1.0, 1.0]]))  # type: ignore[index]
    torch.testing.assert_close(outputs, torch.tensor([[5.0, 6.0]]))


def test_the_mean_of_adapters_is_the_adapter_of_the_mean() -> None:
    flat, inputs = build(rank=3), torch.randn(4, 8, dtype=torch.float32)
    layer = flat.module.get_submodule(flat.schema.weights.specs[0].layer)
    moves = []
    for seed in (1, 2):
        drawn = np.random.default_rng(seed).standard_normal(len(flat.vector)).astype(np.float32)
        flat.vector.data.copy_(torch.from_numpy(drawn))
        moves.append((flat.vector.data.clone(), layer(inputs)))
    flat.vector.data.copy_((moves[0][0] + moves[1][0]) / 2)
    torch.testing.assert_close(layer(inputs), (moves[0][1] + moves[1][1]) / 2)


def test_settings() -> None:
    with pytest.raises(ConfigError, match=r"network\.rank must be at least 1"):
        build(rank=0)
    with pytest.raises(ConfigError, match=r"network\.rank is 9, but layer .* has only 6"):
        build(rank=9)
    with pytest.raises(ConfigError, match=r"network\.alpha"):
        build(alpha=0.0)
    with pytest.raises(ConfigError, match=r"network\.targets"):
        build(targets=("nowhere",))
