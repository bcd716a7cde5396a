"""Low-rank adapters beside the linear layers of any module: y = W x + (alpha / rank) B A x, with W frozen."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LoraLinear", "adapt", "chosen_layers", "freeze"]


class LoraLinear(nn.Module):
    """A frozen linear layer with an adapter; B starts at zero, so that nothing is changed before training."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        """The adapter is float32, whatever the frozen weights are (`freeze` sees to the change between them)."""
        super().__init__()
        self.base = base
        self.scaling = alpha / rank
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=sqrt(5))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The frozen layer and the adapter."""
        frozen: torch.Tensor = self.base(inputs)
        return frozen + functional.linear(functional.linear(inputs, self.lora_a), self.lora_b) * self.scaling


def freeze(module: nn.Module, kept: Sequence[str], dtype: torch.dtype) -> None:
    """Stop training everything but the layers in `kept`; frozen linear layers take a precision of their own.

    Raises:
        ConfigError: `kept` names no layer.
    """
    for layer in kept:
        if not any(_is_in(name, layer) for name, _ in module.named_parameters()):
            raise ConfigError(f"network.train: there is no layer {layer!r}; known: {_listed(module)}")
    shared = {id(weight) for name, weight in module.named_parameters(remove_duplicate=False) if _kept(name, kept)}
    for weight in module.parameters():
        weight.requires_grad_(id(weight) in shared)
    if dtype == torch.float32:
        return
    elsewhere = {
        id(weight)
        for layer in module.modules()
        if not isinstance(layer, nn.Linear)
        for weight in layer.parameters(recurse=False)
    }
    for linear in module.modules():
        if isinstance(linear, nn.Linear) and id(linear.weight) not in shared | elsewhere:
            _keep_in(linear, dtype)


def _keep_in(layer: nn.Linear, dtype: torch.dtype) -> None:
    """Hold a layer's weights in a precision, and change to and from it around the layer."""
    layer.to(dtype)
    layer.register_forward_pre_hook(lambda _, inputs: (inputs[0].to(dtype),))
    layer.register_forward_hook(lambda _, __, output: output.float())


def chosen_layers(module: nn.Module, targets: Sequence[str], head: Sequence[str]) -> list[str]:
    """Names of the linear layers that get an adapter: those that `targets` name, or all but the head.

    Raises:
        ConfigError: No layer is chosen, or a target matches none.
    """
    linear = [name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)]
    for target in targets:
        if not any(_matches(name, target) for name in linear):
            raise ConfigError(
                f"network.targets: {target!r} matches no linear layer of {type(module).__name__}; name one of "
                f"{', '.join(sorted({name.rpartition('.')[2] for name in linear})) or 'none, there is no such layer'}"
            )
    chosen = [name for name in linear if any(_matches(name, target) for target in targets)]
    if not targets:
        chosen = [name for name in linear if not any(_is_in(f"{name}.weight", one) for one in head)]
    if not chosen:
        raise ConfigError(
            f"network.of: {type(module).__name__} has no linear layer beside its head, so no adapter fits; name layers "
            "with network.targets, or train the network itself"
        )
    return chosen


def adapt(module: nn.Module, layers: Sequence[str], rank: int, alpha: float) -> None:
    """Put adapters beside these layers of the module."""
    for name in layers:
        path, _, leaf = name.rpartition(".")
        base = module.get_submodule(name)
        assert isinstance(base, nn.Linear)
        setattr(module.get_submodule(path), leaf, LoraLinear(base, rank, alpha))


def _matches(name: str, target: str) -> bool:
    return name == target or name.endswith(f".{target}")


def _is_in(name: str, layer: str) -> bool:
    return name == layer or name.startswith(f"{layer}.")


def _kept(name: str, kept: Sequence[str]) -> bool:
    return any(_is_in(name, layer) for layer in kept)


def _listed(module: nn.Module) -> str:
    names = sorted({name.partition(".")[0] for name, _ in module.named_parameters()})
    return ", ".join(names)
