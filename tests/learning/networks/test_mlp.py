"""The small fully connected network."""

from __future__ import annotations

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.flat_network import schema_of
from fedreuse.learning.networks.mlp import Mlp
from tests.learning.networks.uploads import sizes


def test_sizes_by_hand() -> None:
    # 64 * 96 + 96 = 6,240; 96 * 10 + 10 = 970; no buffers
    schema = schema_of(Mlp().build((1, 8, 8), 10))
    assert sizes(schema) == (7_210, 28_840, 3_880, 4, 0)
    assert schema.head() == ("fc.weight", "fc.bias")


@pytest.mark.parametrize(
    ("hidden", "names"),
    [((), ["fc.weight"]), ((3,), ["hidden1.weight", "fc.weight"]),
     ((5, 3), ["hidden1.weight", "hidden2.weight", "fc.weight"])],
)  # fmt: skip
def test_layers_in_order(hidden: tuple[int, ...], names: list[str]) -> None:
    module = Mlp(hidden).build((2, 3), 4)
    assert [name for name, _ in module.named_parameters() if name.endswith("weight")] == names
    assert module(torch.zeros(7, 2, 3)).shape == (7, 4)


def test_a_forward_pass_by_hand() -> None:
    module = Mlp((2,)).build((2,), 1)
    with torch.no_grad():
        module.get_parameter("hidden1.weight").copy_(torch.tensor([[1.0, 2.0], [-1.0, 0.0]]))
        module.get_parameter("hidden1.bias").copy_(torch.tensor([0.5, 0.0]))
        module.get_parameter("fc.weight").copy_(torch.tensor([[2.0, 3.0]]))
        module.get_parameter("fc.bias").copy_(torch.tensor([1.0]))
    # (1, 1): hidden (3.5, -1) after ReLU (3.5, 0); 2 * 3.5 + 1 = 8
    assert module(torch.tensor([[1.0, 1.0]])).item() == 8.0


def test_layers_have_units() -> None:
    with pytest.raises(ConfigError, match=r"network\.hidden must be positive numbers, got \(4, 0\)"):
        Mlp((4, 0))
