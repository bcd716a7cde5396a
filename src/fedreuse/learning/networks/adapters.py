"""Low-rank adapters of a network, made by `peft`, and the weights beside them that stay frozen."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.core.extras import needs_package

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["adapt", "chosen_layers", "freeze"]


def freeze(module: nn.Module, kept: Sequence[str], dtype: torch.dtype) -> None:
    """Stop training everything but the layers in `kept`; frozen linear layers get a precision of their own.

    Raises:
        ConfigError: `kept` names no layer.
    """
    for layer in kept:
        if not any(_is_in(name, layer) for name, _ in module.named_parameters()):
            raise ConfigError(f"network.train: there is no layer {layer!r}; known: {_top_layers(module)}")
    shared = {id(weight) for name, weight in module.named_parameters(remove_duplicate=False) if _kept(name, kept)}
    for weight in module.parameters():
        weight.requires_grad_(id(weight) in shared)
    if dtype == torch.float32:
        return
    # a weight that another layer uses too, such as a tied embedding, keeps its precision
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
    """Store a layer's weights in a precision, and convert its input and output."""
    layer.to(dtype)
    layer.register_forward_pre_hook(lambda _, inputs: (inputs[0].to(dtype),))
    layer.register_forward_hook(lambda _, __, output: output.float())


def chosen_layers(module: nn.Module, targets: Sequence[str], head: Sequence[str]) -> list[str]:
    """Return the names of the layers to adapt: those that `targets` name, or all linear layers but the head.

    Raises:
        ConfigError: No layer is chosen, or a target matches none.
    """
    names = [name for name, _ in module.named_modules() if name]
    linear = [name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)]
    for target in targets:
        if not any(_matches(name, target) for name in names):
            raise ConfigError(
                f"network.targets: {target!r} matches no layer of {type(module).__name__}; name one of "
                f"{', '.join(sorted({name.rpartition('.')[2] for name in linear})) or 'none: it has no linear layer'}"
            )
    if targets:
        return [name for name in names if any(_matches(name, target) for target in targets)]
    chosen = [name for name in linear if not any(_is_in(f"{name}.weight", layer) for layer in head)]
    if not chosen:
        raise ConfigError(
            f"network.of: {type(module).__name__} has no linear layer beside its head, so no adapter fits; name layers "
            "with network.targets, or train the network itself"
        )
    return chosen


def adapt(module: nn.Module, layers: Sequence[str], rank: int, alpha: float) -> None:
    """Put adapters beside these layers: y = W x + (alpha / rank) B A x, with B = 0 at the start.

    Raises:
        ConfigError: peft cannot adapt one of the layers.
        MissingPackage: peft is not installed.
    """
    with needs_package("network.name: lora"):
        from peft import LoraConfig, inject_adapter_in_model
    is_trained = {id(weight): weight.requires_grad for weight in module.parameters()}
    settings: dict[str, Any] = {"r": rank, "lora_alpha": alpha, "target_modules": [*layers], "lora_dropout": 0.0}
    state = torch.get_rng_state()
    try:
        inject_adapter_in_model(LoraConfig(bias="none", **settings), module)
    except ValueError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ConfigError(f"network.targets: peft cannot adapt {', '.join(layers)} ({reason}); name others") from None
    # peft freezes everything else, also layers that are trained as they are, and gives adapters the precision of W
    for weight in module.parameters():
        weight.requires_grad_(is_trained.get(id(weight), True))
        if weight.requires_grad:
            weight.data = weight.data.to(torch.float32)
    # peft initialises every matrix more than once; drawing A alone keeps the weights that stored runs started from
    torch.set_rng_state(state)
    for layer in module.modules():
        drawn: Any = getattr(layer, "lora_A", {})
        for matrix in drawn.values():
            nn.init.kaiming_uniform_(matrix.weight, a=sqrt(5))


def _matches(name: str, target: str) -> bool:
    return name == target or name.endswith(f".{target}")


def _is_in(name: str, layer: str) -> bool:
    return name == layer or name.startswith(f"{layer}.")


def _kept(name: str, kept: Sequence[str]) -> bool:
    return any(_is_in(name, layer) for layer in kept)


def _top_layers(module: nn.Module) -> str:
    return ", ".join(sorted({name.partition(".")[0] for name, _ in module.named_parameters()}))
