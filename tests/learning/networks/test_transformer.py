"""The transformer: who sees whom, outputs, tied weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.flat_network import FlatNetwork, schema_of
from fedreuse.learning.networks.transformer import Transformer

TOKENS = torch.tensor([[3, 5, 4, 0], [5, 3, 5, 3]])


def built(**settings: Any) -> torch.nn.Module:
    torch.default_generator.manual_seed(3)
    return Transformer(8, 2, 2, **settings).build((4,), 20).eval()


@pytest.mark.parametrize(("output", "shape"), [("tokens", (2, 4, 20)), ("last", (2, 20)), ("mean", (2, 20))])
def test_outputs(output: Any, shape: tuple[int, ...]) -> None:
    assert built(output=output)(TOKENS).shape == shape


def test_a_token_sees_those_before_it_alone() -> None:
    module, changed = built(), TOKENS.clone()
    changed[:, 2] = 7
    before, after = module(TOKENS), module(changed)
    assert before[:, :2].equal(after[:, :2])
    assert not before[:, 2].equal(after[:, 2])


def test_a_class_does_not_see_padding() -> None:
    module = built(output="mean")
    torch.testing.assert_close(module(TOKENS)[0], module(TOKENS[:1, :3])[0])
    assert module(torch.zeros(1, 4, dtype=torch.long)).isfinite().all()


def test_tied_weights_are_the_head() -> None:
    schema = FlatNetwork(built(tied=True)).schema
    assert schema.head() == ("embed.weight", "head.bias")
    assert schema_of(built()).head() == ("head.weight", "head.bias")
    assert schema_of(built()).weights.size - schema.weights.size == 20 * 8


def test_dropout_is_for_training() -> None:
    module = built(dropout=0.5)
    assert module(TOKENS).equal(module(TOKENS))
    assert not module.train()(TOKENS).equal(module(TOKENS))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 10, "heads": 4}, r"network\.width must be a multiple of network\.heads, 4"),
        ({"layers": 0}, r"network\.layers must be at least 1"),
        ({"heads": 0}, r"network\.heads must be at least 1"),
        ({"dropout": 1.0}, r"network\.dropout must be in \[0, 1\)"),
        ({"tokens": 0}, r"network\.tokens must be at least 1"),
        ({"tied": True, "tokens": 5}, r"network\.tied scores the tokens themselves"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Transformer(**settings)
