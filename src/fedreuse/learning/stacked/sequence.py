"""Networks of several clients as a sequence of layers with written-out passes, without autograd and `vmap`.

For networks this small the bookkeeping of a graph takes longer than the products. Gradients go straight to their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from fedreuse.learning.stacked.layers import Flatten, Layer, Linear, Relu
from fedreuse.learning.stacked.maps import Convolution, FlattenMap, GroupNorm, MaxPool, ToMap

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from fedreuse.learning.stacked.layers import Weights

__all__ = ["Sequence"]

_CLIENTS_OF_MAPS = 16
"""Clients whose maps stay in the processor's caches; few shapes also mean few kernels to prepare."""


class Sequence:
    """Layers one after the other, for stacked weights (clients x shape)."""

    def __init__(self, layers: list[Layer]) -> None:
        """Start without activations."""
        self._layers = layers
        self.clients_at_once = _CLIENTS_OF_MAPS if any(isinstance(layer, ToMap) for layer in layers) else None
        """Most clients of one pass; None: any number."""

    @classmethod
    def of(cls, module: nn.Module) -> Sequence | None:
        """Return the layers of a module; None if it is anything else than layers known here in a sequence.

        A sequence is a `nn.Sequential`, or a module with `in_sequence()`, which returns its layers by name.
        """
        if any(not weight.requires_grad for weight in module.parameters()):
            return None
        layers: list[Layer] = []
        is_map, is_flat = False, False
        for name, layer in _parts("", module):
            if not name or layer._forward_hooks or layer._forward_pre_hooks:  # without a name: the module itself
                return None
            found = _of_maps(name, layer)
            if found is not None and not is_flat:
                layers += [found] if is_map else [ToMap(), found]
                is_map = True
            elif type(layer) is nn.Flatten and (layer.start_dim, layer.end_dim) == (1, -1) and not is_flat:
                layers.append(FlattenMap(next(module.named_parameters())[0]) if is_map else Flatten())
                is_flat = True
            elif type(layer) is nn.Linear and (is_flat or not is_map):
                layers.append(Linear(name, layer.bias is not None))
                is_flat = True
            elif type(layer) is nn.ReLU and any(not isinstance(before, Flatten) for before in layers):
                layers.append(Relu())
            elif type(layer) is not nn.Identity:
                return None
        return cls(layers) if is_flat else None

    def forward(self, weights: Weights, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs (clients x examples x outputs), and keep what `backward` needs."""
        for layer in self._layers:
            inputs = layer.forward(weights, inputs)
        return inputs

    def backward(self, weights: Weights, gradients: Weights, slopes: torch.Tensor) -> None:
        """Write the gradients of the last `forward`; `slopes` are the derivatives of the loss by the outputs."""
        first = next(at for at, layer in enumerate(self._layers) if not isinstance(layer, Flatten | ToMap))
        for at in range(len(self._layers) - 1, first - 1, -1):
            slopes = self._layers[at].backward(weights, gradients, slopes, at == first)


def _parts(name: str, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the layers of a module by name, in the order in which they are applied."""
    is_sequence = type(module) is nn.Sequential
    is_declared = "in_sequence" in vars(type(module))  # a class that inherits it may have another `forward`
    if not (is_sequence or is_declared) or module._forward_hooks or module._forward_pre_hooks:
        yield name, module
        return
    for own, layer in module.named_children() if is_sequence else getattr(module, "in_sequence")():  # noqa: B009
        yield from _parts(f"{name}.{own}" if name else own, layer)


def _of_maps(name: str, layer: nn.Module) -> Layer | None:
    """Return a layer of maps; None if it is another layer, or one with settings that are not written out."""
    if type(layer) is nn.Conv2d and layer.padding_mode == "zeros" and not isinstance(layer.padding, str):
        return Convolution(name, layer)
    if type(layer) is nn.GroupNorm and layer.affine:
        return GroupNorm(name, layer)
    if type(layer) is nn.MaxPool2d and not layer.return_indices:
        return MaxPool(layer)
    return None
