"""ResNet-18: its published sizes, what an upload costs, and the usual layout."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import ModelSchema
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.flat_network import FlatNetwork, schema_of
from fedreuse.learning.networks.norm import Norm
from fedreuse.learning.networks.resnet18 import ResNet18
from fedreuse.learning.networks.small_maps import SmallMapConv2d
from tests.learning.networks.uploads import array_bytes, modes, schema_for, sizes, upload


@pytest.fixture(scope="module")
def schema() -> ModelSchema:
    """The network of CIFAR-10."""
    return schema_for("resnet18", FACTS["cifar10"].shape, FACTS["cifar10"].num_classes)


@pytest.mark.slow
def test_published_sizes(schema: ModelSchema) -> None:
    # the head is 512 * C + C numbers of 4 bytes: 20,520 for 10 classes, 205,200 for 100
    assert sizes(schema) == (11_181_642, 44_765_128, 20_520, 122, 20)
    many = schema_for("resnet18", FACTS["cifar100"].shape, FACTS["cifar100"].num_classes)
    assert sizes(many) == (11_227_812, 44_949_808, 205_200, 122, 20)
    assert schema.head() == ("fc.weight", "fc.bias")


@pytest.mark.slow
def test_an_upload_at_a_fifth_as_the_paper_counts_it(schema: ModelSchema) -> None:
    sent = upload(schema, "as_weights")
    assert sent.field_bytes == array_bytes(sent) == 10_351_858
    assert f"{1 - sent.field_bytes / schema.dense_bytes:.6f}" == "0.768752"
    assert modes(sent) == {"update": {"bitmap"}, "buffers": {"bitmap"}, "counters": {"dense"}}


@pytest.mark.slow
def test_an_upload_at_a_fifth_with_dense_buffers(schema: ModelSchema) -> None:
    sent = upload(schema, "dense")
    assert sent.parcels["update"].field_bytes == 10_342_898  # type: ignore[union-attr]
    # 4 * 9,600 statistics + 20 * 8 counters = 38,560
    assert sent.field_bytes == array_bytes(sent) == 10_342_898 + 38_560
    assert f"{1 - sent.field_bytes / schema.dense_bytes:.5f}" == "0.76809"


def test_the_usual_layout(schema: ModelSchema) -> None:
    names = [spec.name for spec in schema.weights]
    assert names[:3] == ["conv1.weight", "bn1.weight", "bn1.bias"]
    assert names[-2:] == ["fc.weight", "fc.bias"]
    shapes = {spec.name: spec.shape for spec in schema.weights}
    assert shapes["conv1.weight"] == (64, 3, 7, 7)
    assert shapes["layer2.0.downsample.0.weight"] == (128, 64, 1, 1)
    assert shapes["layer4.1.conv2.weight"] == (512, 512, 3, 3)
    assert {name.split(".downsample")[0] for name in names if "downsample" in name} == {
        "layer2.0", "layer3.0", "layer4.0",
    }  # fmt: skip
    assert not [name for name in names if "conv" in name and name.endswith("bias")]


@pytest.mark.slow
def test_sizes_with_each_norm(schema: ModelSchema) -> None:
    # channels behind convolutions: 64 + 4*64 + 5*128 + 5*256 + 5*512 = 4,800. A norm has two numbers for each,
    # a convolution without one a bias: 11,181,642 - 2*4,800 + 4,800 = 11,176,842
    group = schema_of(ResNet18("group").build((3, 32, 32), 10))
    assert group.weights == schema.weights  # names too
    assert group.dense_bytes == 4 * 11_181_642
    none = schema_of(ResNet18("none").build((3, 32, 32), 10))
    assert none.weights.size == 11_176_842
    assert not [spec.name for spec in none.weights if "bn" in spec.name or "downsample.1" in spec.name]
    assert len([spec for spec in none.weights if spec.name.endswith("bias")]) == 20 + 1  # convolutions, and fc


def test_convolutions_without_normalisation_start_with_a_bias_of_zero() -> None:
    module = ResNet18("none").build((1, 32, 32), 10)
    biases = [layer.bias for layer in module.modules() if isinstance(layer, nn.Conv2d)]
    assert len(biases) == 20
    assert all(bias is not None and bias.requires_grad and not bias.any() for bias in biases)


@pytest.mark.slow
def test_groups_take_one_example_of_one_pixel() -> None:
    # 8 -> 4 -> 2 -> 2 -> 1 -> 1 -> 1: BatchNorm refuses a batch of one here, groups of 4 and more channels do not
    module = ResNet18("group").build((1, 8, 8), 10)
    groups = {layer.num_channels: layer.num_groups for layer in module.modules() if isinstance(layer, nn.GroupNorm)}
    assert groups == {64: 16, 128: 32, 256: 32, 512: 32}
    assert module.train()(torch.ones(1, 1, 8, 8)).isfinite().all()


@pytest.mark.slow
def test_a_small_image_shrinks_to_one_pixel() -> None:
    # 32 -> 16 (stem) -> 8 (pool) -> 8 -> 4 -> 2 -> 1: BatchNorm cannot train on a batch of one
    module = ResNet18().build((3, 32, 32), 10)
    seen = []
    module.get_submodule("layer4").register_forward_hook(lambda _, __, outputs: seen.append(tuple(outputs.shape)))
    with torch.inference_mode():
        assert module.eval()(torch.zeros(1, 3, 32, 32)).shape == (1, 10)
    assert seen == [(1, 512, 1, 1)]
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        module.train()(torch.zeros(1, 3, 32, 32))


def test_convolutions_start_with_hes_normal() -> None:
    weight = ResNet18().build((3, 32, 32), 10).get_parameter("layer3.1.conv1.weight")
    # fan out 256 * 9 = 2,304: standard deviation sqrt(2 / 2304) = 0.02946 over 589,824 draws
    assert float(weight.detach().std()) == pytest.approx((2 / 2304) ** 0.5, rel=0.01)


def twins(norm: Norm, dtype: torch.dtype) -> tuple[nn.Module, nn.Module]:
    """The network, and the same with torch's own convolutions."""
    made = []
    for is_plain in (False, True):
        torch.default_generator.manual_seed(4)
        module = ResNet18(norm).build((3, 32, 32), 10).to(dtype)
        for layer in module.modules():
            if is_plain and isinstance(layer, SmallMapConv2d):
                layer.__class__ = nn.Conv2d
        made.append(module)
    return made[0], made[1]


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["batch", "group", "none"])
def test_it_is_the_network_with_torchs_convolutions(norm: Norm) -> None:
    ours, plain = twins(norm, torch.float64)
    assert list(ours.state_dict()) == list(plain.state_dict())
    inputs, labels = torch.randn(6, 3, 32, 32, dtype=torch.float64), torch.arange(6)
    network = FlatNetwork(ours)  # channels last inside
    scores = [module(inputs) for module in (ours, plain)]
    assert torch.allclose(*scores, rtol=1e-9, atol=1e-9)
    network.backward(nn.functional.cross_entropy(scores[0], labels))
    nn.functional.cross_entropy(scores[1], labels).backward()
    for (name, one), other in zip(ours.named_parameters(), plain.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(one.grad, other.grad, rtol=1e-7, atol=1e-9 * float(other.grad.abs().max())), name
    for one, other in zip(ours.buffers(), plain.buffers(), strict=True):
        assert torch.allclose(one, other, rtol=1e-9)
    centre = ours.get_parameter("layer4.1.conv2.weight").grad
    assert centre is not None
    assert centre[:, :, 1, 1].any()
    centre[:, :, 1, 1] = 0
    assert not centre.any()  # the other taps meet padding alone
    with torch.inference_mode():
        assert torch.allclose(ours.eval()(inputs), plain.eval()(inputs), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_single_precision_is_equal_to_rounding() -> None:
    ours, plain = twins("group", torch.float32)
    inputs = torch.randn(6, 3, 32, 32)
    with torch.inference_mode():
        expected = plain(inputs)
        assert torch.allclose(ours(inputs), expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


def test_only_images_are_accepted() -> None:
    with pytest.raises(ConfigError, match=r"network resnet18 needs images \(channels, height, width\), got \(64,\)"):
        ResNet18().build((64,), 10)
