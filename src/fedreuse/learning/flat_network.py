"""A torch module whose parameters, gradients and buffers are views of flat vectors: loading and stepping are one pass.

Convolution weights are stored channels-last, which is fast for the kernels; everything that is read or written is in
schema order, so the layout does not affect Top-K ties or bitmaps.
"""

from __future__ import annotations

import mmap
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from fedreuse.core.errors import ConfigError
from fedreuse.core.mapped import is_large, vacant
from fedreuse.core.model import Model
from fedreuse.core.schema import ModelSchema, Role, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, to_dense
from fedreuse.learning.networks.head import declared_head
from fedreuse.learning.networks.small_maps import adding_gradients

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["FlatNetwork", "frozen_digest", "schema_of"]

_HOST = torch.device("cpu")


class FlatNetwork:
    """A module and the flat vectors that hold its values.

    Args:
        module: A module on the device; its initial values are kept.
        device: Device of the vectors.

    Raises:
        ConfigError: The module has no trainable parameter, parameters of several types, or a buffer of another type
            than floating point or int64.
    """

    def __init__(self, module: nn.Module, device: torch.device = _HOST) -> None:
        """Move all values into flat vectors, and make the module's tensors views of them."""
        self.module = module
        self.schema = replace(schema_of(module), frozen=frozen_digest(module))
        self._device = device
        self._weights = _Flat(self.schema.weights, device)
        self._gradient = _Flat(self.schema.weights, device)
        self._buffers = _Flat(self.schema.buffers, device)
        self._counters = _Flat(self.schema.counters, device)
        self._parameters = dict(_trainable(module))
        for name, parameter in self._parameters.items():
            self._weights.views[name].copy_(parameter.data)  # before the parameter becomes a view of the vector
            parameter.data = self._weights.views[name]
            parameter.grad = self._gradient.views[name]
        for name, buffer, _ in _buffers(module):
            flat = self._buffers if name in self._buffers.views else self._counters
            flat.views[name].copy_(buffer)
            path, _, leaf = name.rpartition(".")
            module.get_submodule(path)._buffers[leaf] = flat.views[name]
        # one parameter for the optimizer: a step updates all weights at once
        self.vector = nn.Parameter(self._weights.vector)
        self.vector.grad = self.gradient = self._gradient.vector

    def on(self, device: torch.device) -> FlatNetwork:
        """Return the network on a device; this object must not be used afterwards if the device is another one."""
        return self if device == self._device else FlatNetwork(self.module.to(device), device)

    def load(self, model: Model) -> None:
        """Copy the values of a model into the network."""
        self._weights.write(to_dense(model.weights).values)
        self._buffers.write(to_dense(model.buffers).values)
        self._counters.write(to_dense(model.counters).values)

    def read(self) -> Model:
        """Return a copy of the current values."""
        return Model(
            Tensors(self.schema.weights, self._weights.read()),
            Tensors(self.schema.buffers, self._buffers.read()),
            Tensors(self.schema.counters, self._counters.read()),
        )

    def release(self) -> None:
        """Return the memory of large vectors to the system; their values are lost, and `load` sets them again."""
        self._weights.release()
        self._gradient.release()

    @contextmanager
    def keeping_statistics(self) -> Iterator[None]:
        """Restore buffers and counters at the end."""
        buffers, counters = self._buffers.read(), self._counters.read()
        yield
        self._buffers.write(buffers)
        self._counters.write(counters)

    def read_gradient(self, names: Collection[str]) -> Tensors:
        """Return a copy of the gradient with respect to some weights."""
        part = self.schema.weights.subset(names)
        pieces = [self._gradient.views[spec.name].cpu().numpy().reshape(-1) for spec in part]
        return Tensors(part, np.concatenate(pieces) if pieces else np.empty(0, part.dtype))

    def weights_and_gradients(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return every weight and its gradient, as views of the vectors with the weight's shape."""
        return [(view, self._gradient.views[name]) for name, view in self._weights.views.items()]

    def place(self, tensors: Tensors) -> torch.Tensor:
        """Return tensors shaped like the weights as one vector, in the order of `vector`."""
        flat = _Flat(self.schema.weights, self._device)
        flat.write(to_dense(tensors).values)
        return flat.vector

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradient of a loss to `gradient`."""
        with adding_gradients():  # parameters' gradients are views of `gradient`, so they are allocated
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def differentiate(self, names: Collection[str] | None) -> None:
        """Select the weights to differentiate by (None: all); the others cost no backward pass."""
        for name, parameter in self._parameters.items():
            parameter.requires_grad_(names is None or name in names)


class _Flat:
    """One flat torch vector, a view per tensor, and the conversion from and to schema order.

    `_here` is a staging vector in host memory; on the CPU it is `vector` itself.
    """

    def __init__(self, schema: Schema, device: torch.device) -> None:
        self._memory: mmap.mmap | None = None
        if is_large(schema.dense_bytes):  # pages of its own, which `release` can return
            self._memory = mmap.mmap(-1, schema.dense_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self._here = torch.from_numpy(np.frombuffer(self._memory, schema.dtype))
        else:
            self._here = torch.zeros(schema.size, dtype=getattr(torch, schema.dtype.name))
        self.vector = self._here.to(device)
        self.views: dict[str, torch.Tensor] = {}
        self._array = self._here.numpy()
        self._permuted: list[tuple[int, int, np.ndarray]] = []
        for spec, start in zip(schema, schema.offsets, strict=False):
            self.views[spec.name] = _view(self.vector[start : start + spec.size], spec.shape)
            if len(spec.shape) == 4:  # a convolution, whose order in memory is not that of the schema
                here = _view(self._here[start : start + spec.size], spec.shape)
                self._permuted.append((start, start + spec.size, here.numpy()))

    def write(self, values: np.ndarray) -> None:
        self._array[:] = values
        for start, stop, view in self._permuted:
            view[...] = values[start:stop].reshape(view.shape)
        if self.vector is not self._here:
            self.vector.copy_(self._here)

    def release(self) -> None:
        if self._memory is not None:
            self._memory.madvise(mmap.MADV_DONTNEED)

    def read(self) -> np.ndarray:
        if self.vector is not self._here:
            self._here.copy_(self.vector)
        values = vacant(len(self._array), self._array.dtype)
        values[:] = self._array
        for start, stop, view in self._permuted:
            values[start:stop] = view.reshape(-1)
        return values


def _view(piece: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return a piece of a flat vector as a tensor; convolution weights are stored channels-last."""
    if len(shape) != 4:
        return piece.view(shape)
    out, inner, height, width = shape
    return piece.view(out, height, width, inner).permute(0, 3, 1, 2)


def schema_of(module: nn.Module) -> ModelSchema:
    """Return the schema of a module: trainable parameters are weights, float buffers buffers, integers counters.

    Frozen parameters are not part of it: both sides build them, so they are never sent; `FlatNetwork` records their
    digest.

    Raises:
        ConfigError: There is no trainable parameter, or tensors have types that cannot be sent together.
    """
    weights = tuple(_spec(name, parameter, "weight") for name, parameter in _trainable(module))
    if not weights:
        raise ConfigError(f"network: {type(module).__name__} has no trainable parameter")
    buffers = [
        (_spec(name, tensor, _role(name, tensor), is_variance), tensor)
        for name, tensor, is_variance in _buffers(module)
    ]
    try:
        schema = ModelSchema(
            Schema(weights),
            Schema(tuple(spec for spec, tensor in buffers if tensor.is_floating_point())),
            Schema(tuple(spec for spec, tensor in buffers if not tensor.is_floating_point())),
        )
    except ValueError as error:
        raise ConfigError(
            f"network: {error}; convert the module with .float() or .double() before it is used"
        ) from None
    head = declared_head(module)
    return schema.with_head(head) if head else schema


def _trainable(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad)


def frozen_digest(module: nn.Module) -> str:
    """Return the SHA-256 over names, types, shapes and bytes of the frozen parameters; empty if there are none."""
    frozen = [(name, weight.detach()) for name, weight in module.named_parameters() if not weight.requires_grad]
    if not frozen:
        return ""
    digest = sha256()
    for name, weight in frozen:
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        digest.update(weight.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _buffers(module: nn.Module) -> Iterator[tuple[str, torch.Tensor, bool]]:
    """Yield name, tensor and whether it is a variance, which must stay positive, of every persistent buffer."""
    kept = module.state_dict().keys()  # a non-persistent buffer is not part of the model
    for name, tensor in module.named_buffers():
        if name in kept:
            yield name, tensor, name.rpartition(".")[2] == "running_var"


def _role(name: str, tensor: torch.Tensor) -> Role:
    if not tensor.is_floating_point() and tensor.dtype != torch.int64:
        raise ConfigError(f"network: buffer {name} is {tensor.dtype}; only floating point and int64 can be sent")
    return "buffer" if tensor.is_floating_point() else "counter"


def _spec(name: str, tensor: torch.Tensor, role: Role, is_positive: bool = False) -> TensorSpec:
    return TensorSpec(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), role, is_positive)
