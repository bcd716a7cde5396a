"""Written-out passes of fully connected networks: the gradients of autograd, and modules that are something else."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call

from fedreuse.learning.fully_connected import FullyConnected

CLIENTS, EXAMPLES = 3, 5


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
    layers = FullyConnected.of(module)
    assert layers is not None
    draw = torch.Generator().manual_seed(3)
    weights = {name: torch.randn(CLIENTS, *weight.shape, generator=draw) for name, weight in module.named_parameters()}
    inputs, slopes = (torch.randn(CLIENTS, EXAMPLES, size, generator=draw) for size in (4, 2))
    outputs = layers.forward(weights, inputs)
    gradients = {name: torch.full_like(weight, torch.nan) for name, weight in weights.items()}
    layers.backward(weights, gradients, slopes)
    for client in range(CLIENTS):
        own = {name: weight[client].clone().requires_grad_() for name, weight in weights.items()}
        wanted = functional_call(module, own, (inputs[client],))
        torch.testing.assert_close(outputs[client], wanted)
        wanted.backward(slopes[client])  # type: ignore[no-untyped-call]  # torch leaves it untyped
        for name, weight in own.items():
            torch.testing.assert_close(gradients[name][client], weight.grad)


def test_other_modules_are_left_to_autograd() -> None:
    class Own(nn.Sequential):
        pass

    frozen, hooked = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))
    frozen[0].requires_grad_(requires_grad=False)
    hooked[0].register_forward_hook(lambda *_: None)
    others = [
        nn.Linear(2, 2), Own(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2), nn.Tanh()), frozen, hooked,
        nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), nn.Sequential(nn.Flatten(0), nn.Linear(2, 2)), nn.Sequential(),
    ]  # fmt: skip
    assert [FullyConnected.of(module) for module in others] == [None] * len(others)
