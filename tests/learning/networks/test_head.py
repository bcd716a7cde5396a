"""The head of a network: named by the module, in three ways, or the last layer; built-in networks keep theirs."""

from __future__ import annotations

import pytest
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.learning.flat_network import FlatNetwork, schema_of
from fedreuse.learning.networks.head import declared_head
from fedreuse.learning.networks.network import networks


class Silent(nn.Module):
    """Its names hold `fc`, which means nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4, affine=False)
        self.out = nn.Linear(4, 2)
        self.relu = nn.ReLU()


class ByAttribute(Silent):
    head_layers = ("fc1", "out.bias")


class ByName(Silent):
    head_layers = "fc1"


class ByProperty(Silent):
    @property
    def head_layers(self) -> list[str]:
        return ["fc1"]


class ByMethod(Silent):
    def head_layers(self) -> tuple[str, ...]:
        return ("fc1",)


@pytest.mark.parametrize(
    ("module", "head"),
    [
        (Silent, ("out.weight", "out.bias")),
        (ByAttribute, ("fc1.weight", "fc1.bias", "out.bias")),
        (ByName, ("fc1.weight", "fc1.bias")),
        (ByProperty, ("fc1.weight", "fc1.bias")),
        (ByMethod, ("fc1.weight", "fc1.bias")),
    ],
)
def test_a_module_says_what_its_head_is(module: type[nn.Module], head: tuple[str, ...]) -> None:
    network = FlatNetwork(module())
    assert network.schema.head() == head
    assert network.read().schema.head() == head  # a model keeps it
    assert schema_of(module()).digest == schema_of(Silent()).digest


@pytest.mark.parametrize("name", ["cnn", "mlp", "resnet18"])
def test_built_in_networks_have_the_head_that_was_found_by_name_before(name: str) -> None:
    schema = schema_of(networks.parse(name, "network").build((1, 16, 16), 3))
    assert schema.head() == tuple(
        spec.name for spec in schema.weights if "classifier" in spec.name or "fc" in spec.name
    )


def test_a_layer_that_trains_nothing_is_no_head() -> None:
    module = ByName()
    module.fc1.requires_grad_(False)
    with pytest.raises(
        ConfigError, match=r"^network: head_layers of ByName names 'fc1', which has no trainable weight"
    ):
        declared_head(module)


def test_a_prefix_of_a_name_is_no_layer() -> None:
    module = Silent()
    module.head_layers = ("ou",)
    with pytest.raises(ConfigError, match=r"names 'ou', which has no trainable weight; did you mean 'out'\?"):
        schema_of(module)
