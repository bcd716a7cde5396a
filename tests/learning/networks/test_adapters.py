"""Adapters beside linear layers: the sum by hand, which layers, what is frozen, and in which precision."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import sqrt

import pytest
import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.core.extras import MissingPackage
from fedreuse.learning.networks.adapters import adapt, chosen_layers, freeze
from fedreuse.learning.networks.mlp import Mlp
from fedreuse.learning.networks.transformer import Transformer


def test_by_hand() -> None:
    # W = 2, b = 1, A = 3, B = 5, alpha / rank = 4 / 1: y = 2 x + 1 + 4 * 5 * 3 x = 62 x + 1
    module = nn.Sequential(nn.Linear(1, 1))
    adapt(module, ["0"], 1, 4.0)
    for weight, value in zip(module.parameters(), (2.0, 1.0, 3.0, 5.0), strict=True):
        nn.init.constant_(weight, value)
    assert module(torch.tensor([[2.0]])).item() == 125.0


def test_a_is_drawn_as_the_first_numbers_after_the_network() -> None:
    torch.default_generator.manual_seed(3)
    module = Mlp((6, 5)).build((4,), 3)
    state = torch.get_rng_state()
    adapt(module, ["hidden1", "hidden2"], 2, 4.0)
    after = torch.get_rng_state()
    torch.set_rng_state(state)
    for name in ("hidden1", "hidden2"):
        drawn = module.get_parameter(f"{name}.lora_A.default.weight")
        assert nn.init.kaiming_uniform_(torch.empty_like(drawn), a=sqrt(5)).equal(drawn)
    assert torch.get_rng_state().equal(after)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingPackage, match=r"network\.name: lora needs .*pip install 'fedreuse\[adapters\]'"):
        adapt(Mlp((4,)).build((3,), 2), ["hidden1"], 2, 4.0)


def test_a_layer_that_cannot_be_adapted() -> None:
    with pytest.raises(ConfigError, match=r"network\.targets: peft cannot adapt 0"):
        adapt(nn.Sequential(nn.ReLU(), nn.Linear(1, 1)), ["0"], 2, 4.0)


def test_before_training_nothing_is_changed() -> None:
    module, inputs = Mlp((6, 5)).build((4,), 3), torch.randn(2, 4, generator=torch.Generator().manual_seed(0))
    before = module(inputs)
    adapt(module, ["hidden1", "hidden2"], 2, 4.0)
    assert module(inputs).equal(before)


@pytest.mark.parametrize(
    ("targets", "wanted"),
    [
        ((), ["query", "key", "value", "mix", "up", "down"]),
        (("query", "value"), ["query", "value"]),
        (("blocks.0.up", "head"), ["up", "head"]),
    ],
)
def test_layers_are_chosen_by_the_ends_of_their_names(targets: Sequence[str], wanted: list[str]) -> None:
    module = Transformer(8, 1, 2).build((4,), 20)
    assert [name.rpartition(".")[2] for name in chosen_layers(module, targets, ["head"])] == wanted


def test_an_adapter_that_matches_no_layer() -> None:
    module = Transformer(8, 1, 2).build((4,), 20)
    with pytest.raises(ConfigError, match=r"network\.targets: 'q_proj' matches no layer of TransformerModule; .*up"):
        chosen_layers(module, ["q_proj"], ["head"])
    with pytest.raises(ConfigError, match=r"network\.of: Sequential has no linear layer beside its head"):
        chosen_layers(Mlp(()).build((4,), 3), (), ["fc"])
    with pytest.raises(ConfigError, match=r"network\.train: there is no layer 'fc'; known: blocks, embed, head"):
        freeze(module, ["fc"], torch.float32)


def test_what_is_kept_is_trained_whatever_its_name() -> None:
    module = Transformer(8, 1, 2, tied=True).build((4,), 20)
    freeze(module, ["head"], torch.float32)
    assert [name for name, weight in module.named_parameters() if weight.requires_grad] == ["embed.weight", "head.bias"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_frozen_layers_may_be_half(dtype: torch.dtype) -> None:
    tokens = torch.tensor([[3, 5, 4, 1]])
    module = Transformer(8, 1, 2).build((4,), 20)
    exact = module(tokens)
    freeze(module, ["head"], dtype)
    adapt(module, chosen_layers(module, (), ["head"]), 2, 4.0)
    kinds = {name: weight.dtype for name, weight in module.named_parameters()}
    assert kinds["blocks.0.up.base_layer.weight"] == dtype
    assert kinds["blocks.0.up.lora_A.default.weight"] == kinds["embed.weight"] == kinds["head.weight"] == torch.float32
    found = module(tokens)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact, atol=0.02, rtol=0.02)
    found.sum().backward()
    assert module.get_parameter("blocks.0.up.lora_B.default.weight").grad is not None


def test_a_tied_weight_keeps_its_precision() -> None:
    module = Transformer(8, 1, 2, tied=True).build((4,), 20)
    freeze(module, (), torch.bfloat16)
    assert module.get_parameter("embed.weight").dtype == torch.float32
    assert module(torch.tensor([[3, 5, 4, 1]])).isfinite().all()
