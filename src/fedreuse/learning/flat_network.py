"""A torch module whose parameters, gradients and buffers are views of flat vectors: loading and stepping are one pass.

Convolution weights lie channels-last inside, because that is what the kernels want; at the border everything is in
schema order, so the layout never leaks into Top-K ties or bitmaps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.core.model import Model
from fedreuse.core.schema import ModelSchema, Role, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, to_dense
from fedreuse.learning.frozen import frozen_digest
from fedreuse.learning.networks.head import declared_head

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["FlatNetwork", "schema_of"]

_HOST = torch.device("cpu")


class FlatNetwork:
    """Owns a module and the memory behind it."""

    def __init__(self, module: nn.Module, device: torch.device = _HOST) -> None:
        """The module's own initial values are kept; it must be on the device already."""
        self.module = module
        self.schema = replace(schema_of(module), frozen=frozen_digest(module))
        self._device = device
        self._weights = _Flat(self.schema.weights, device)
        self._gradient = _Flat(self.schema.weights, device)
        self._buffers = _Flat(self.schema.buffers, device)
        self._counters = _Flat(self.schema.counters, device)
        self._parameters = dict(_trainable(module))
        for name, parameter in self._parameters.items():
            self._weights.views[name].copy_(parameter.data)
            parameter.data = self._weights.views[name]
            parameter.grad = self._gradient.views[name]
        for name, held, _ in _buffers(module):
            flat = self._buffers if name in self._buffers.views else self._counters
            flat.views[name].copy_(held)
            _set_buffer(module, name, flat.views[name])
        self.vector = nn.Parameter(self._weights.vector)
        self.vector.grad = self.gradient = self._gradient.vector

    def on(self, device: torch.device) -> FlatNetwork:
        """The same network there; this one is not to be used any more, unless it is there already."""
        return self if device == self._device else FlatNetwork(self.module.to(device), device)

    def load(self, model: Model) -> None:
        """Take over a model's values."""
        self._weights.write(to_dense(model.weights).values)
        self._buffers.write(to_dense(model.buffers).values)
        self._counters.write(to_dense(model.counters).values)

    def read(self) -> Model:
        """A copy of the present values."""
        return Model(
            Tensors(self.schema.weights, self._weights.read()),
            Tensors(self.schema.buffers, self._buffers.read()),
            Tensors(self.schema.counters, self._counters.read()),
        )

    def read_gradient(self, names: Collection[str]) -> Tensors:
        """A copy of the gradient with respect to some weights."""
        part = self.schema.weights.subset(names)
        pieces = [self._gradient.views[spec.name].cpu().numpy().reshape(-1) for spec in part]
        return Tensors(part, np.concatenate(pieces) if pieces else np.empty(0, part.dtype))

    def place(self, tensors: Tensors) -> torch.Tensor:
        """A weight-shaped vector in the order of `vector`."""
        flat = _Flat(self.schema.weights, self._device)
        flat.write(to_dense(tensors).values)
        return flat.vector

    def differentiate(self, names: Collection[str] | None) -> None:
        """Choose the weights whose gradient is wanted (None: all); the others cost no backward pass."""
        for name, parameter in self._parameters.items():
            parameter.requires_grad_(names is None or name in names)


class _Flat:
    """One flat torch vector, a view per tensor, and the way to and from schema order.

    On another device than the host's the way leads through a second vector here; on the host both are the same.
    """

    def __init__(self, schema: Schema, device: torch.device) -> None:
        self._here = torch.zeros(schema.size, dtype=getattr(torch, schema.dtype.name))
        self.vector = self._here.to(device)
        self.views: dict[str, torch.Tensor] = {}
        self._array = self._here.numpy()
        self._permuted: list[tuple[int, int, np.ndarray]] = []
        for spec, start in zip(schema, schema.offsets, strict=False):
            self.views[spec.name] = _view(self.vector[start : start + spec.size], spec.shape)
            if len(spec.shape) == 4:
                here = _view(self._here[start : start + spec.size], spec.shape)
                self._permuted.append((start, start + spec.size, here.numpy()))

    def write(self, values: np.ndarray) -> None:
        self._array[:] = values
        for start, stop, view in self._permuted:
            view[...] = values[start:stop].reshape(view.shape)
        if self.vector is not self._here:
            self.vector.copy_(self._here)

    def read(self) -> np.ndarray:
        if self.vector is not self._here:
            self._here.copy_(self.vector)
        values = self._array.copy()
        for start, stop, view in self._permuted:
            values[start:stop] = view.reshape(-1)
        return values


def _view(piece: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """A piece of a flat vector as a tensor; the weights of convolutions lie channels-last."""
    if len(shape) != 4:
        return piece.view(shape)
    out, inner, height, width = shape
    return piece.view(out, height, width, inner).permute(0, 3, 1, 2)


def schema_of(module: nn.Module) -> ModelSchema:
    """Weights are the trainable parameters, float buffers are buffers, integers counters; frozen ones are nothing.

    Both ends build frozen parameters, so they never travel; `FlatNetwork` notes their digest.
    """
    weights = tuple(_spec(name, parameter, "weight") for name, parameter in _trainable(module))
    if not weights:
        raise ConfigError(f"network: {type(module).__name__} has no trainable parameter")
    held = [
        (_spec(name, tensor, _role(name, tensor), is_variance), tensor)
        for name, tensor, is_variance in _buffers(module)
    ]
    try:
        schema = ModelSchema(
            Schema(weights),
            Schema(tuple(spec for spec, tensor in held if tensor.is_floating_point())),
            Schema(tuple(spec for spec, tensor in held if not tensor.is_floating_point())),
        )
    except ValueError as error:
        raise ConfigError(
            f"network: {error}; convert the module with .float() or .double() before it is used"
        ) from None
    head = declared_head(module)
    return schema.with_head(head) if head else schema


def _trainable(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad)


def _buffers(module: nn.Module) -> Iterator[tuple[str, torch.Tensor, bool]]:
    kept = module.state_dict().keys()  # a non-persistent buffer is not part of the model
    for name, tensor in module.named_buffers():
        if name in kept:
            yield name, tensor, name.rpartition(".")[2] == "running_var"


def _role(name: str, tensor: torch.Tensor) -> Role:
    if not tensor.is_floating_point() and tensor.dtype != torch.int64:
        raise ConfigError(f"network: buffer {name} is {tensor.dtype}; only floating point and int64 buffers can travel")
    return "buffer" if tensor.is_floating_point() else "counter"


def _spec(name: str, tensor: torch.Tensor, role: Role, is_positive: bool = False) -> TensorSpec:
    return TensorSpec(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), role, is_positive)


def _set_buffer(module: nn.Module, name: str, view: torch.Tensor) -> None:
    path, _, leaf = name.rpartition(".")
    module.get_submodule(path)._buffers[leaf] = view
