"""Low-rank adapters (LoRA) of another network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from fedreuse.core.errors import require
from fedreuse.core.registry import part
from fedreuse.learning.networks.adapters import adapt, chosen_layers, freeze
from fedreuse.learning.networks.head import declared_head
from fedreuse.learning.networks.network import Network, networks

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Lora"]


@networks.register("lora")
@dataclass(frozen=True)
class Lora(Network):
    """Low-rank adapters (LoRA, Hu et al., 2021) beside linear layers of another network, whose own weights are frozen.

    Only the adapters (and the layers in `train`) are the model: they are trained, sent, cached and counted. Frozen
    weights never travel; both ends build them, and compare their digest before the first round.

    Args:
        of: The network, such as `transformer`, `hugging_face`, or one's own.
        rank: Rank of an adapter, at least 1.
        alpha: Above 0; an adapter counts alpha / rank times.
        targets: Ends of the names of the layers that get one, such as `query`; default: all linear ones but the head.
        train: Layers that are trained as they are, such as `head`.
        freeze_a: Leave A as it was drawn and train B alone (FFA-LoRA, Sun et al., 2024): half of the bytes, and the
            average of products B A is the product of the averages.
        frozen: Precision of frozen linear layers: `float32`, `bfloat16` or `float16`. Adapters are float32.

    Raises:
        ConfigError: `targets` or `train` match no layer.
        MissingPackage: peft is not installed (extra `adapters`).

    Example: `network: {name: lora, of: {name: transformer, width: 64}, rank: 4, train: [head]}`.
    """

    of: Network = part(networks)
    rank: int = 4
    alpha: float = 8.0
    targets: tuple[str, ...] = ()
    train: tuple[str, ...] = ()
    freeze_a: bool = False
    frozen: Literal["float32", "bfloat16", "float16"] = "float32"

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.rank >= 1, "network.rank must be at least 1", self.rank)
        require(self.alpha > 0, "network.alpha must be above 0", self.alpha)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the other network with its weights frozen and adapters beside them."""
        module = self.of.build(shape, num_classes)
        head = [name.rpartition(".")[0] for name in declared_head(module)]
        freeze(module, self.train, getattr(torch, self.frozen))
        layers = chosen_layers(module, self.targets, head)
        adapt(module, layers, self.rank, self.alpha)
        if self.freeze_a:
            for name, weight in module.named_parameters():
                if ".lora_a" in name.lower():
                    weight.requires_grad_(False)
        # methods that compare heads use the network's own where it is trained, else the last adapter
        trained = {name for name, weight in module.named_parameters() if weight.requires_grad}
        own = [layer for layer in head if any(name.startswith(f"{layer}.") for name in trained)]
        module.head_layers = own or [layers[-1]]  # type: ignore[assignment]  # an attribute that we add
        return module
