"""Adapters of a square matrix between frozen factors (Fed-SB, LoRA-XS)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from fedreuse.core.errors import ConfigError, require
from fedreuse.core.registry import part
from fedreuse.learning.networks.adapters import chosen_layers, freeze
from fedreuse.learning.networks.head import declared_head
from fedreuse.learning.networks.network import Network, networks

__all__ = ["Square"]


@networks.register("square")
@dataclass(frozen=True)
class Square(Network):
    """Fed-SB (Singhal et al., 2025): y = W x + alpha B R A x with W, A and B frozen; R (rank x rank) is trained.

    B and A are the leading singular vectors of W. The mean of the clients' R is the exact mean of their adapters, and a
    layer costs rank^2 numbers whatever its size. R starts at 0.

    Args:
        of: The network, such as `transformer`, or one's own.
        rank: Rows and columns of R, at least 1.
        alpha: Factor of the adapters, above 0.
        targets: Ends of the names of the layers that get one; default: all linear ones but the head.
        train: Layers that are trained as they are, such as `head`.

    Raises:
        ConfigError: `targets` or `train` match no layer, a target is not linear, or a layer is smaller than the rank.

    Example: `network: {name: square, of: {name: transformer, width: 64}, rank: 16, train: [head]}`.
    """

    of: Network = part(networks)
    rank: int = 16
    alpha: float = 1.0
    targets: tuple[str, ...] = ()
    train: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.rank >= 1, "network.rank must be at least 1", self.rank)
        require(self.alpha > 0, "network.alpha must be above 0", self.alpha)

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the other network with its weights frozen and adapters in their layers."""
        module = self.of.build(shape, num_classes)
        head = [name.rpartition(".")[0] for name in declared_head(module)]
        freeze(module, self.train, torch.float32)
        layers = chosen_layers(module, self.targets, head)
        for name in layers:
            layer = module.get_submodule(name)
            if not isinstance(layer, nn.Linear):
                raise ConfigError(f"network.targets: {name} is {type(layer).__name__}, and only linear layers fit")
            if self.rank > min(layer.weight.shape):
                raise ConfigError(
                    f"network.rank is {self.rank}, but layer {name} has only {min(layer.weight.shape)} rows or columns"
                )
            path, _, leaf = name.rpartition(".")
            setattr(module.get_submodule(path), leaf, _Adapted(layer, self.rank, self.alpha))
        trained = {name for name, weight in module.named_parameters() if weight.requires_grad}
        own = [layer for layer in head if any(name.startswith(f"{layer}.") for name in trained)]
        module.head_layers = own or [layers[-1]]  # type: ignore[assignment]  # an attribute that we add
        return module


class _Adapted(nn.Module):
    """A linear layer and its adapter."""

    def __init__(self, layer: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        left, _, right = torch.linalg.svd(layer.weight.detach(), full_matrices=False)
        self.layer, self._alpha = layer, alpha
        self.a = nn.Parameter(right[:rank].contiguous(), requires_grad=False)
        self.b = nn.Parameter(left[:, :rank].contiguous(), requires_grad=False)
        self.r = nn.Parameter(torch.zeros(rank, rank))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return W x + bias + alpha B R A x."""
        adapted = inputs @ self.a.T @ self.r.T @ self.b.T
        outputs: torch.Tensor = self.layer(inputs) + self._alpha * adapted
        return outputs
