"""Written-out passes of small networks: the gradients of autograd, and modules that are something else."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call

from fedreuse.learning.networks.cnn import CnnModule
from fedreuse.learning.stacked.sequence import Sequence

CLIENTS, EXAMPLES = 3, 5
ROUNDING = {"rtol": 1e-4, "atol": 1e-4}
"""Bound of the difference to autograd for values of order 1, in float32."""


def check(module: nn.Module, shape: tuple[int, ...], outputs: int) -> None:
    """Compare outputs and gradients of every client with those of autograd."""
    layers = Sequence.of(module)
    assert layers is not None
    draw = torch.Generator().manual_seed(3)
    weights = {name: torch.randn(CLIENTS, *weight.shape, generator=draw) for name, weight in module.named_parameters()}
    inputs = torch.randn(CLIENTS, EXAMPLES, *shape, generator=draw).round()  # equal values, for the rule of pooling
    slopes = torch.randn(CLIENTS, EXAMPLES, outputs, generator=draw)
    found = layers.forward(weights, inputs)
    gradients = {name: torch.full_like(weight, torch.nan) for name, weight in weights.items()}
    layers.backward(weights, gradients, slopes)
    for client in range(CLIENTS):
        own = {name: weight[client].clone().requires_grad_() for name, weight in weights.items()}
        wanted = functional_call(module, own, (inputs[client],))
        torch.testing.assert_close(found[client], wanted, **ROUNDING)
        wanted.backward(slopes[client])  # type: ignore[no-untyped-call]  # torch leaves it untyped
        for name, weight in own.items():
            torch.testing.assert_close(gradients[name][client], weight.grad, **ROUNDING)


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(4, 2)),
        nn.Sequential(
            nn.Flatten(), nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5, bias=False), nn.ReLU(), nn.Linear(5, 2)
        ),
        nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2), nn.ReLU()),
    ],
)
def test_gradients_of_every_client_are_those_of_autograd(module: nn.Module) -> None:
    check(module, (4,), 2)


@pytest.mark.parametrize(
    "module",
    [
        CnnModule((2, 9, 8), 3, width=4, hidden=5, norm="group"),
        CnnModule((2, 9, 8), 3, width=4, hidden=5, norm="none"),
        nn.Sequential(
            nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
            nn.Sequential(nn.Conv2d(2, 4, (2, 3), stride=(1, 2), groups=2, bias=False), nn.ReLU(), nn.GroupNorm(2, 4)),
            nn.Conv2d(4, 2, 2, dilation=(2, 1)),
            nn.Flatten(),
            nn.Linear(4, 3),
        ),
    ],
)
def test_images_of_clients_do_not_mix(module: nn.Module) -> None:
    check(module, (2, 9, 8), 3)


def test_other_modules_are_left_to_autograd() -> None:
    class Own(nn.Sequential):
        pass

    class Other(CnnModule):
        """May have another `forward`."""

    frozen, hooked = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))
    frozen[0].requires_grad_(requires_grad=False)
    hooked[0].register_forward_hook(lambda *_: None)
    others = [
        nn.Linear(2, 2), Own(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2), nn.Tanh()), frozen, hooked,
        nn.Sequential(nn.Conv2d(1, 2, 2), nn.Linear(2, 2)), nn.Sequential(nn.Flatten(), nn.Linear(2, 2), nn.Flatten()),
        nn.Sequential(nn.Conv2d(1, 1, 2, padding="same"), nn.Flatten()), Other((1, 4, 4), 2, 2, 2, "none"),
        nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), nn.Sequential(nn.Flatten(0), nn.Linear(2, 2)), nn.Sequential(),
    ]  # fmt: skip
    assert [Sequence.of(module) for module in others] == [None] * len(others)
