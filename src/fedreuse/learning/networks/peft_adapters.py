"""Adapters made by Hugging Face's library `peft`, for any module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.networks.adapters import chosen_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

__all__ = ["adapt_with_peft"]


def adapt_with_peft(
    module: nn.Module, targets: Sequence[str], head: Sequence[str], rank: int, alpha: float
) -> Sequence[str]:
    """Put adapters beside layers; returns their names. The library knows other layers than linear ones, too.

    Raises:
        ConfigError: The package is missing, or no layer matches.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise ConfigError(
            "network.library is peft, but the package is not installed; pip install 'fedreuse[adapters]', or set "
            "network.library: plain"
        ) from None
    wanted: Any = list(targets) or chosen_layers(module, (), head)
    is_trained = {id(weight): weight.requires_grad for weight in module.parameters()}
    settings: dict[str, Any] = {"r": rank, "lora_alpha": alpha, "target_modules": wanted, "lora_dropout": 0.0}
    try:
        inject_adapter_in_model(LoraConfig(bias="none", **settings), module)
    except ValueError as error:
        raise ConfigError(
            f"network.targets: {', '.join(wanted)} match no layer that peft can adapt ({_first(error)}); name others"
        ) from None
    for weight in module.parameters():  # the library freezes everything else, also what is to be trained
        weight.requires_grad_(is_trained.get(id(weight), True))
        if weight.requires_grad:
            weight.data = weight.data.to(torch.float32)
    return [name for name, layer in module.named_modules() if hasattr(layer, "lora_A")]


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")
