"""The paper's CNN: its published sizes, what an upload costs, and that pooling may stand before ReLU."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.flat_network import schema_of
from fedreuse.learning.networks.cnn import Cnn
from fedreuse.learning.networks.norm import Norm
from tests.learning.networks.uploads import array_bytes, modes, schema_for, sizes, upload


@pytest.mark.parametrize(
    ("dataset", "parameters", "dense_bytes", "signature_bytes"),
    [
        # MNIST: conv 1*9*32 + 32 = 320, BN 64, conv 32*9*64 + 64 = 18,496, BN 128, fc 3136*128 + 128 = 401,536,
        # fc 1,290: in all 421,834. Bytes: 4 * 421,834 + 4 * 192 statistics + 2 * 8 counters = 1,688,120.
        # Signature: 4 * (401,536 + 1,290) = 1,611,304
        ("mnist", 421_834, 1_688_120, 1_611_304),
        ("fashion_mnist", 421_834, 1_688_120, 1_611_304),
        ("emnist_balanced", 426_607, 1_707_212, 1_630_396),
        ("pathmnist", 422_281, 1_689_908, 1_610_788),
    ],
)
def test_published_sizes(dataset: str, parameters: int, dense_bytes: int, signature_bytes: int) -> None:
    facts = FACTS[dataset]
    schema = schema_for("cnn", facts.shape, facts.num_classes)
    assert sizes(schema) == (parameters, dense_bytes, signature_bytes, 18, 2)
    assert schema.head() == ("classifier.0.weight", "classifier.0.bias", "classifier.2.weight", "classifier.2.bias")


def test_an_upload_at_a_fifth_as_the_paper_counts_it() -> None:
    schema = schema_for("cnn", (1, 28, 28), 10)
    sent = upload(schema, "as_weights")
    assert sent.field_bytes == array_bytes(sent) == 390_358
    assert f"{1 - sent.field_bytes / schema.dense_bytes:.6f}" == "0.768762"
    # every float tensor is a bitmap; the counters are single numbers and travel whole
    assert modes(sent) == {"update": {"bitmap"}, "buffers": {"bitmap"}, "counters": {"dense"}}


def test_an_upload_at_a_fifth_with_dense_buffers() -> None:
    schema = schema_for("cnn", (1, 28, 28), 10)
    sent = upload(schema, "dense")
    # 390,174 for the parameters and 4 * 192 + 2 * 8 = 784 for statistics and counters
    assert sent.parcels["update"].field_bytes == 390_174  # type: ignore[union-attr]
    assert sent.field_bytes == array_bytes(sent) == 390_174 + 784
    assert f"{1 - sent.field_bytes / schema.dense_bytes:.5f}" == "0.76841"
    assert modes(sent) == {"update": {"bitmap"}, "buffers": {"dense"}, "counters": {"dense"}}


@pytest.mark.parametrize(("dataset", "saving"), [("emnist_balanced", "0.768763"), ("pathmnist", "0.768765")])
def test_other_published_savings(dataset: str, saving: str) -> None:
    schema = schema_for("cnn", FACTS[dataset].shape, FACTS[dataset].num_classes)
    assert f"{1 - array_bytes(upload(schema, 'as_weights')) / schema.dense_bytes:.6f}" == saving


def test_everything_kept_saves_nothing() -> None:
    schema = schema_for("cnn", (1, 28, 28), 10)
    for buffers in ("as_weights", "dense"):
        assert array_bytes(upload(schema, buffers, ratio=1.0)) == schema.dense_bytes  # type: ignore[arg-type]


def test_pooling_before_relu_is_the_same_function() -> None:
    module = Cnn(4, 8).build((3, 8, 8), 5)
    usual = Cnn(4, 8).build((3, 8, 8), 5)
    usual.load_state_dict(module.state_dict())
    features = usual.get_submodule("features")
    assert isinstance(features, nn.Sequential)
    for pool in (2, 6):
        features[pool], features[pool + 1] = features[pool + 1], features[pool]
    inputs = torch.linspace(-2, 2, 2 * 3 * 64).reshape(2, 3, 8, 8)
    for is_training in (True, False):
        scores = module.train(is_training)(inputs)
        assert scores.equal(usual.train(is_training)(inputs))
        assert scores.shape == (2, 5)


def test_sizes_with_each_norm() -> None:
    # width 16, hidden 8, 8x8, 10 classes: conv 1*9*16 + 16 = 160, conv 16*9*32 + 32 = 4,640, fc 32*4*8 + 8 = 1,032,
    # fc 8*10 + 10 = 90, in all 5,922; both norms have 2*16 + 2*32 = 96 more
    weights = {norm: schema_of(Cnn(16, 8, norm).build((1, 8, 8), 10)).weights for norm in get_args(Norm)}
    assert {norm: part.size for norm, part in weights.items()} == {"batch": 6_018, "group": 6_018, "none": 5_922}
    assert weights["group"] == weights["batch"]  # names too
    layers = ("features.0", "features.4", "classifier.0", "classifier.2")
    assert [spec.name for spec in weights["none"]] == [
        f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias")
    ]
    groups = [
        layer.num_groups
        for layer in Cnn(16, 8, "group").build((1, 8, 8), 10).modules()
        if isinstance(layer, nn.GroupNorm)
    ]
    assert groups == [4, 8]


def test_batch_is_the_network_that_it_was() -> None:
    torch.default_generator.manual_seed(9)
    module = Cnn(4, 6).build((2, 8, 8), 3)
    torch.default_generator.manual_seed(9)
    features = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.MaxPool2d(2), nn.ReLU(),
    )  # fmt: skip
    classifier = nn.Sequential(nn.Linear(32, 6), nn.ReLU(), nn.Linear(6, 3))
    usual = nn.ModuleDict({"features": features, "classifier": classifier}).state_dict()
    assert list(module.state_dict()) == list(usual)
    assert all(tensor.equal(usual[name]) for name, tensor in module.state_dict().items())


def test_width_and_hidden_units() -> None:
    module = Cnn(width=4, hidden=6).build((2, 9, 13), 3)
    # 9 x 13 pooled twice is 2 x 3; 8 channels: 48 inputs
    assert module.get_parameter("classifier.0.weight").shape == (6, 48)
    assert module(torch.zeros(2, 2, 9, 13)).shape == (2, 3)


@pytest.mark.parametrize("shape", [(1, 3, 28), (1, 28, 3), (28, 28), (64,)])
def test_images_too_small_to_pool_twice_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="network cnn needs images of at least 4x4"):
        Cnn().build(shape, 10)


def test_layers_have_units() -> None:
    with pytest.raises(ConfigError, match=r"network\.width must be at least 1, got 0"):
        Cnn(width=0)
    with pytest.raises(ConfigError, match=r"network\.hidden must be at least 1, got -1"):
        Cnn(hidden=-1)
