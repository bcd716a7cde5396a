"""Convolutions on small maps: torch's values and gradients, zero for taps on padding, torch's own in other cases."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fedreuse.learning.networks import small_maps
from fedreuse.learning.networks.small_maps import SmallMapConv2d, adding_gradients

RESNET18 = [
    (3, 64, 32, 7, 2),
    (64, 64, 8, 3, 1),
    (64, 128, 8, 3, 2),
    (64, 128, 8, 1, 2),
    (128, 128, 4, 3, 1),
    (128, 256, 4, 3, 2),
    (128, 256, 4, 1, 2),
    (256, 256, 2, 3, 1),
    (256, 512, 2, 3, 2),
    (256, 512, 2, 1, 2),
    (512, 512, 1, 3, 1),
]
"""Channels before and after, side of the input, kernel and stride of each kind of convolution on 32x32 images."""
BY_PRODUCTS = RESNET18[3:4] + RESNET18[5:]


def both(convolution: SmallMapConv2d) -> tuple[SmallMapConv2d, nn.Conv2d]:
    """The convolution and torch's with the same weights."""
    ordinary = nn.Conv2d(
        convolution.in_channels,
        convolution.out_channels,
        convolution.kernel_size,  # type: ignore[arg-type]
        convolution.stride,  # type: ignore[arg-type]
        convolution.padding,  # type: ignore[arg-type]
        bias=convolution.bias is not None,
        dtype=convolution.weight.dtype,
    )
    ordinary.load_state_dict(convolution.state_dict())
    return convolution, ordinary


def results(convolution: nn.Conv2d, inputs: torch.Tensor) -> list[torch.Tensor]:
    """Outputs, and the gradients of a function that weighs each differently: by inputs, weight and bias."""
    inputs = inputs.detach().requires_grad_()
    outputs = convolution(inputs)
    factors = torch.linspace(-1, 1, outputs.numel(), dtype=outputs.dtype).reshape(outputs.shape)
    return [outputs, *torch.autograd.grad((outputs * factors).sum(), [inputs, *convolution.parameters()])]


def assert_equal(found: list[torch.Tensor], expected: list[torch.Tensor], error: float) -> None:
    """Within an error relative to the largest number of each tensor."""
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert float((one - other).detach().abs().max()) <= error * max(1.0, float(other.detach().abs().max()))


def is_by_products(convolution: SmallMapConv2d, inputs: torch.Tensor) -> bool:
    node = convolution(inputs).grad_fn
    while node is not None and type(node).__name__ in ("AddBackward0", "PermuteBackward0", "ViewBackward0"):
        node = node.next_functions[0][0]
    return type(node).__name__ == "_ProductsBackward"


@pytest.mark.parametrize("is_channels_last", [False, True])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-12), (torch.float32, 5e-6)])
@pytest.mark.parametrize("case", RESNET18, ids=str)
def test_convolutions_of_resnet18(
    case: tuple[int, int, int, int, int], dtype: torch.dtype, error: float, is_channels_last: bool
) -> None:
    before, after, side, kernel, stride = case
    torch.default_generator.manual_seed(1)
    inputs = torch.randn(6, before, side, side, dtype=dtype)
    ours, ordinary = both(SmallMapConv2d(before, after, kernel, stride, kernel // 2, bias=False, dtype=dtype))
    if is_channels_last:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
        ours.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    assert is_by_products(ours, inputs) == (case in BY_PRODUCTS)
    assert_equal(results(ours, inputs), results(ordinary, inputs), error)


@given(
    images=st.tuples(*[st.integers(1, 5)] * 4),
    channels=st.integers(1, 4),
    kernel=st.tuples(*[st.integers(1, 5)] * 2),
    stride=st.tuples(*[st.integers(1, 4)] * 2),
    padding=st.tuples(*[st.integers(0, 4)] * 2),
    bias=st.booleans(),
)
def test_any_geometry(images: Any, channels: int, kernel: Any, stride: Any, padding: Any, bias: bool) -> None:
    torch.default_generator.manual_seed(2)
    inputs = torch.randn(images, dtype=torch.float64)
    ours, ordinary = both(SmallMapConv2d(images[1], channels, kernel, stride, padding, bias=bias, dtype=torch.float64))
    try:
        expected = results(ordinary, inputs)
    except RuntimeError:  # the kernel is larger than the padded image
        with pytest.raises(RuntimeError):
            ours(inputs)
        return
    assert_equal(results(ours, inputs), expected, 1e-12)
    assert_equal(results(ours.float(), inputs.float()), [one.float() for one in expected], 1e-5)


@pytest.mark.parametrize(
    ("side", "stride", "used"),
    [
        (1, 1, [[0, 0, 0], [0, 1, 0], [0, 0, 0]]),
        (2, 2, [[0, 0, 0], [0, 1, 1], [0, 1, 1]]),
        (2, 1, [[1, 1, 1], [1, 1, 1], [1, 1, 1]]),
    ],
)
@pytest.mark.parametrize("is_adding", [False, True])
def test_taps_on_padding_have_a_gradient_of_zero(
    side: int, stride: int, used: list[list[int]], is_adding: bool
) -> None:
    convolution = SmallMapConv2d(3, 4, 3, stride, 1)
    convolution.weight.grad = torch.zeros_like(convolution.weight) if is_adding else None
    with adding_gradients():
        convolution(torch.rand(5, 3, side, side) + 0.1).sum().backward()
    gradient = convolution.weight.grad
    assert gradient is not None
    assert ((gradient != 0) == torch.tensor(used, dtype=torch.bool)).all()


@pytest.mark.parametrize("side", [1, 2])
def test_gradients_are_added_to_those_there_are(side: int) -> None:
    ours, ordinary = both(SmallMapConv2d(3, 4, 3, 1, 1))
    inputs = torch.randn(5, 3, side, side)
    for convolution in (ours, ordinary):
        convolution.weight.grad = torch.ones_like(convolution.weight)
    held = ours.weight.grad
    for _ in range(2):
        with adding_gradients():
            ours(inputs).square().sum().backward()
        ordinary(inputs).square().sum().backward()
    assert ours.weight.grad is held
    assert torch.allclose(ours.weight.grad, ordinary.weight.grad, rtol=1e-5, atol=1e-5)  # type: ignore[arg-type]
    # outside the context a gradient is returned, and what is held stays
    before = held.clone()  # type: ignore[union-attr]
    (returned,) = torch.autograd.grad(ours(inputs).sum(), [ours.weight])
    assert returned.any()
    assert before.equal(held)  # type: ignore[arg-type]


@pytest.mark.parametrize("side", [1, 2, 4])
def test_outputs_can_be_changed_in_place(side: int) -> None:
    ours, ordinary = both(SmallMapConv2d(3, 4, 3, 2, 1, bias=False))
    inputs = torch.randn(5, 3, side, side)
    gradients = [
        torch.autograd.grad(torch.relu_(convolution(inputs)).sum(), [convolution.weight])[0]
        for convolution in (ours, ordinary)
    ]
    assert torch.allclose(*gradients, atol=1e-5)


def test_only_wanted_gradients_are_computed() -> None:
    convolution = SmallMapConv2d(3, 4, 3, 1, 1)
    convolution.weight.requires_grad_(False)
    inputs = torch.randn(5, 3, 1, 1, requires_grad=True)
    convolution(inputs).sum().backward()
    assert convolution.weight.grad is None
    assert inputs.grad is not None


@pytest.mark.parametrize("side", [1, 2, 4])
def test_gradients_of_gradients(side: int) -> None:
    ours, ordinary = both(SmallMapConv2d(2, 3, 3, 2, 1, dtype=torch.float64))
    inputs = torch.randn(4, 2, side, side, dtype=torch.float64, requires_grad=True)
    found = []
    for convolution in (ours, ordinary):
        (first,) = torch.autograd.grad(convolution(inputs).pow(3).sum(), inputs, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), [inputs, convolution.weight]))
    assert_equal(list(found[0]), list(found[1]), 1e-12)


@pytest.mark.parametrize("case", BY_PRODUCTS, ids=str)
def test_bits_are_the_same_each_time_and_an_example_depends_on_no_other(case: Any) -> None:
    before, after, side, kernel, stride = case
    convolution = SmallMapConv2d(before, after, kernel, stride, kernel // 2)
    inputs = torch.randn(8, before, side, side)
    first, second = results(convolution, inputs), results(convolution, inputs)
    assert all(one.equal(other) for one, other in zip(first, second, strict=True))
    with torch.inference_mode():
        whole, alone = convolution(inputs), convolution(inputs[:3])
    assert torch.allclose(whole[:3], alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "convolution",
    [
        SmallMapConv2d(4, 4, 3, padding=1, groups=2, bias=False),
        SmallMapConv2d(4, 4, 3, padding=2, dilation=2, bias=False),
        SmallMapConv2d(4, 4, 3, padding="same", bias=False),
        SmallMapConv2d(4, 4, 3, padding=1, padding_mode="circular", bias=False),
        SmallMapConv2d(4, 4, 1, padding=1, bias=False),
    ],
    ids=["groups", "dilation", "same", "circular", "only padding"],
)
def test_other_convolutions_are_torchs(convolution: SmallMapConv2d) -> None:
    assert not is_by_products(convolution, torch.randn(3, 4, 1, 1))


def test_other_inputs_are_torchs() -> None:
    convolution = SmallMapConv2d(4, 4, 3, padding=1, bias=False)
    assert is_by_products(convolution, torch.randn(3, 4, 1, 1))
    assert convolution(torch.randn(4, 1, 1)).shape == (4, 1, 1)  # without a batch
    assert convolution(torch.randn(0, 4, 1, 1)).shape == (0, 4, 1, 1)
    with pytest.raises(RuntimeError, match="expected input"):
        convolution(torch.randn(3, 5, 1, 1))
    with torch.autocast("cpu", torch.bfloat16):
        assert convolution(torch.randn(3, 4, 1, 1)).dtype == torch.bfloat16
    assert convolution.to(torch.bfloat16)(torch.randn(3, 4, 1, 1).bfloat16()).dtype == torch.bfloat16


def test_flops_are_those_of_a_convolution() -> None:
    counted = []
    for convolution in both(SmallMapConv2d(4, 8, 3, padding=1, bias=False)):
        with FlopCounterMode(display=False) as counter:
            convolution(torch.zeros(2, 4, 1, 1)).sum().backward()
        counted.append(counter.get_total_flops())
    assert counted == [2 * 2 * 2 * 4 * 8 * 9] * 2  # forward and by weight, of two examples: nine taps, padding included


def test_an_exported_program_holds_an_ordinary_convolution() -> None:
    convolution = SmallMapConv2d(4, 8, 3, padding=1).eval()
    inputs = torch.randn(2, 4, 1, 1)
    program = torch.export.export(convolution, (inputs,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},))
    assert {str(node.target) for node in program.graph.nodes if node.op == "call_function"} == {"aten.conv2d.default"}
    assert torch.allclose(program.module()(inputs), convolution(inputs), atol=1e-6)


def test_transformed_calls_are_torchs() -> None:
    convolution = SmallMapConv2d(4, 8, 3, padding=1)
    inputs = torch.randn(5, 2, 4, 1, 1)
    with torch.no_grad():
        assert torch.allclose(torch.vmap(convolution)(inputs)[1], convolution(inputs[1]), atol=1e-6)


def test_without_onednn_products_are_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, ordinary = both(SmallMapConv2d(3, 4, 3, 1, 1))
    monkeypatch.setattr(small_maps, "_onednn_product", lambda: None)
    inputs = torch.randn(5, 3, 2, 2)
    assert_equal(results(ours, inputs), results(ordinary, inputs), 1e-5)


def test_the_state_is_that_of_conv2d() -> None:
    states = []
    for kind in (SmallMapConv2d, nn.Conv2d):
        torch.default_generator.manual_seed(3)
        states.append(kind(3, 4, 3, padding=1).state_dict())
    assert list(states[0]) == list(states[1]) == ["weight", "bias"]
    assert all(states[0][name].equal(states[1][name]) for name in states[1])
