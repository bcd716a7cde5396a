"""The LSTM: sizes, outputs, tied weights, and gradients of the rows that occur."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fedreuse.compression.codecs.codec import Codec
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import ConfigError
from fedreuse.core.tensors import sub
from fedreuse.learning.flat_network import FlatNetwork
from fedreuse.learning.networks.lstm import Lstm
from fedreuse.learning.optimizers import Sgd

TOKENS = torch.tensor([[3, 5, 3, 0], [5, 3, 5, 3]])


def test_the_docstring_counts() -> None:
    assert sum(weight.numel() for weight in Lstm().build((80,), 98).parameters()) == 45922


@pytest.mark.parametrize(("output", "shape"), [("tokens", (2, 4, 98)), ("last", (2, 98)), ("mean", (2, 98))])
def test_outputs(output: Any, shape: tuple[int, ...]) -> None:
    assert Lstm(8, output=output).build((4,), 98)(TOKENS).shape == shape


def test_padding_behind_a_text_changes_nothing_before_it() -> None:
    module = Lstm(8, output="last").build((4,), 98)
    torch.testing.assert_close(module(TOKENS)[0], module(TOKENS[:1, :3])[0])


def test_tied_weights_are_one_and_are_the_head() -> None:
    network = FlatNetwork(Lstm(8, tied=True).build((4,), 98))
    assert [spec.name for spec in network.schema.weights if spec.shape == (98, 8)] == ["embed.weight"]
    assert network.schema.head() == ("embed.weight", "head.bias")
    names = ["embed.weight", "head.bias"]
    network.differentiate(names)
    network.module(TOKENS).sum().backward()
    assert np.abs(network.read_gradient(names)["embed.weight"]).min() > 0  # the last layer touches every row


def trained(sparse: bool) -> tuple[FlatNetwork, Any]:
    """One step on two texts, without weight decay."""
    torch.default_generator.manual_seed(4)
    network = FlatNetwork(Lstm(8, sparse=sparse).build((4,), 98))
    before = network.read()
    network.module(TOKENS).square().mean().backward()
    Sgd(lr=0.1, weight_decay=0.0).stepper(network.vector, 0.1)()
    return network, sub(network.read().weights, before.weights)


def test_only_rows_that_occur_change_and_codecs_find_that() -> None:
    network, update = trained(sparse=True)
    rows = np.flatnonzero(np.abs(update["embed.weight"]).sum(1))
    assert rows.tolist() == [0, 3, 5]
    assert update.values.tobytes() == trained(sparse=False)[1].values.tobytes()
    schema = network.schema.weights.subset(["embed.weight"])
    embedding = type(update)(schema, update["embed.weight"].reshape(-1))

    def encoded(codec: Codec) -> Parcel:
        return codec.encode(embedding, schema, np.random.default_rng(0))

    # three rows of eight numbers, each with its place
    assert [sum(block.field_bytes for block in encoded(codec).blocks) for codec in (Dense(), Nonzero())] == [
        98 * 8 * 4, 3 * 8 * (4 + 4),
    ]  # fmt: skip
    sizes = [
        Envelope("update", 1, 1, parcels={"update": encoded(codec)}).size()
        for codec in (Dense(), Nonzero(), Packed(Dense()))
    ]
    assert sizes[2] < sizes[1] < sizes[0] / 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, r"network\.width must be at least 1"),
        ({"layers": 0}, r"network\.layers must be at least 1"),
        ({"tokens": 0}, r"network\.tokens must be at least 1"),
        ({"tied": True, "tokens": 5}, r"network\.tied scores the tokens themselves; drop tokens"),
        ({"tied": True, "sparse": True}, r"network\.sparse is not for tied weights"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Lstm(**settings)
