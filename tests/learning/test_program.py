"""A program computes what the network does, bit for bit, for batches of other sizes; what cannot be one is said."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch import nn

from fedreuse.core.errors import UserError
from fedreuse.learning.networks.network import networks
from fedreuse.learning.program import as_program, example_input, with_values
from fedreuse.learning.trainer import initial_network

CASES: list[tuple[Any, tuple[int, ...]]] = [
    ("mlp", (1, 8, 8)),
    ({"name": "cnn", "width": 2, "hidden": 4}, (1, 8, 8)),
    ({"name": "lstm", "width": 4, "tied": True, "output": "last"}, (6,)),
    ({"name": "lora", "of": {"name": "transformer", "width": 8, "heads": 2, "layers": 1}, "rank": 2}, (6,)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("network", "shape"), CASES)
def test_a_program_is_the_network(network: Any, shape: tuple[int, ...]) -> None:
    module = initial_network(networks.parse(network, "network"), shape, 10, 7).module
    arrays = {name: tensor.detach().clone().contiguous().numpy() for name, tensor in module.state_dict().items()}
    inputs = example_input(with_values(module, arrays), shape)
    assert inputs.is_floating_point() == (len(shape) == 3)
    program = torch.export.load(io.BytesIO(as_program(module, inputs))).module()
    drawn = torch.arange(5 * inputs[0].numel()).reshape(5, *shape) % 10
    given = drawn.to(inputs.dtype)
    assert torch.equal(program(given), module(given))
    assert program.state_dict().keys() == module.state_dict().keys()


def test_values_are_taken_over_and_frozen_ones_stay() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    before = module[0].weight.detach().clone()
    with_values(module, {"1.weight": torch.tensor([3.0, 4.0]).numpy()})
    assert module[1].weight.tolist() == [3.0, 4.0]
    assert torch.equal(module[0].weight, before)
    assert not module.training


def test_an_input_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match=r"accepts no batch of the shape \(2, 3\)"):
        example_input(nn.Linear(2, 2), (3,))
