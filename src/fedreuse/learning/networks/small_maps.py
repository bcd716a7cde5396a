"""Convolutions on small maps as matrix products: the same function, without the products with padding.

A 3x3 convolution meets a 1x1 map with one of its nine taps, and a pixel of a 2x2 map with four. The convolution kernels
of torch multiply the padding too, and loops that short cost them their speed. ResNet-18 on 32x32 images has such maps
in half of its layers, which hold nineteen of twenty weights.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["SmallMapConv2d", "adding_gradients"]

_LONGEST_SIDE, _LONGEST_SIDE_POINTWISE = 2, 4
"""Longest side of an output map that is computed by matrix products, in general and with 1x1 kernels. On larger maps
convolution kernels are as fast or faster (AVX-512, 32 to 1,000 images)."""
_is_adding: ContextVar[bool] = ContextVar("is_adding", default=False)


class SmallMapConv2d(nn.Conv2d):
    """`torch.nn.Conv2d` by matrix products where they are faster: outputs up to 2x2, or up to 4x4 with 1x1 kernels.

    Parameters, their names, shapes and initial values are those of `Conv2d`. Outputs and gradients are equal to
    rounding, and the gradient of a tap that meets only padding is exactly zero. All other cases use torch's
    convolution: larger outputs, other devices and precisions, groups, dilation, padding other than zeros, and calls
    that are traced, exported, compiled or counted. An exported program therefore holds ordinary convolutions, and the
    FLOPs of a network are those of convolutions.

    Args:
        *args: The arguments of `Conv2d`.
        **kwargs: The keyword arguments of `Conv2d`.

    Example:
        >>> SmallMapConv2d(8, 16, 3, padding=1)(torch.zeros(4, 8, 1, 1)).shape
        torch.Size([4, 16, 1, 1])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the convolution of a batch of images."""
        plan = self._plan(input)
        if plan is None:
            return super().forward(input)
        pixels: torch.Tensor = _Products.apply(input, self.weight, plan)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        outputs = _images(pixels, len(input), *plan.output_size)
        return outputs if self.bias is None else outputs + self.bias.view(1, -1, 1, 1)

    def _plan(self, inputs: torch.Tensor) -> _Plan | None:
        """Return the matrix products that give the output, or None for torch's convolution."""
        is_ordinary = self.groups == 1 and self.dilation == (1, 1) and self.padding_mode == "zeros"
        if not is_ordinary or isinstance(self.padding, str):
            return None
        if inputs.dim() != 4 or inputs.shape[1] != self.in_channels or not inputs.numel():
            return None  # without a batch, empty, or an error that torch explains
        if not _is_plain(inputs, self.weight):
            return None
        return _plan_for(tuple(inputs.shape[2:]), self.kernel_size, self.stride, self.padding)


@contextmanager
def adding_gradients() -> Iterator[None]:
    """Let backward passes add to `weight.grad` only what the taps in use contribute, where it is allocated already.

    Otherwise autograd is given the gradient of the whole weight, zeros included, and adds all of it: on 1x1 maps nine
    numbers are written, read and added for each one that may differ from zero. Only for `Tensor.backward`:
    `torch.autograd.grad` and hooks of a weight would not see its gradient.

    Example:
        >>> conv = SmallMapConv2d(1, 1, 3, padding=1, bias=False)
        >>> conv.weight.grad = torch.zeros_like(conv.weight)
        >>> with adding_gradients():
        ...     conv(torch.ones(2, 1, 1, 1)).sum().backward()
        >>> conv.weight.grad.flatten()
        tensor([0., 0., 0., 0., 2., 0., 0., 0., 0.])
    """
    before = _is_adding.set(True)
    try:
        yield
    finally:
        _is_adding.reset(before)


class _Piece(NamedTuple):
    """A matrix product: the input pixels that it reads, and for each output pixel that it gives, the taps they meet.

    A row of the left matrix holds as many pixels as there are taps: a whole window, or a single pixel with a 1x1
    kernel, where one product serves all pixels.
    """

    pixels: tuple[slice, slice]
    taps: tuple[tuple[slice, slice], ...]


class _Plan(NamedTuple):
    """The products that make up a convolution, in the order of output pixels, and its geometry."""

    pieces: tuple[_Piece, ...]
    output_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]


class _Part(NamedTuple):
    """A product in the backward pass: its matrix, and the gradient with respect to its output."""

    piece: _Piece
    matrix: torch.Tensor
    outer: torch.Tensor


@lru_cache(maxsize=256)
def _plan_for(
    size: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...]
) -> _Plan | None:
    """Return the products for an input size, or None where torch's convolution is to be used."""
    sides = list(zip(size, kernel, stride, padding, strict=True))
    output_size = tuple((side + 2 * pad - taps) // step + 1 for side, taps, step, pad in sides)
    is_pointwise = kernel == (1, 1) and padding == (0, 0)
    if not 0 < min(output_size) <= max(output_size) <= (_LONGEST_SIDE_POINTWISE if is_pointwise else _LONGEST_SIDE):
        return None
    if is_pointwise:
        rows, columns = (slice(0, side, step) for side, step in zip(size, stride, strict=True))
        return _Plan((_Piece((rows, columns), ((slice(0, 1), slice(0, 1)),)),), output_size, stride, padding)
    windows = [_windows(*side) for side in sides]
    if any(pixels.start >= pixels.stop for side in windows for pixels, _ in side):
        return None  # a window of padding alone
    outputs = [
        ((rows, columns), (row_taps, column_taps))
        for (rows, row_taps), (columns, column_taps) in product(*windows)  # in the order of output pixels
    ]
    first = outputs[0][0]
    if all(pixels == first for pixels, _ in outputs):  # one large product is faster than several
        pieces: tuple[_Piece, ...] = (_Piece(first, tuple(taps for _, taps in outputs)),)
    else:
        pieces = tuple(_Piece(pixels, (taps,)) for pixels, taps in outputs)
    return _Plan(pieces, output_size, stride, padding)


def _windows(size: int, kernel: int, stride: int, padding: int) -> list[tuple[slice, slice]]:
    """Return for each output position along one side the input positions in its window, and the taps they meet."""
    windows = []
    for first in range(-padding, size + padding - kernel + 1, stride):
        start, stop = max(first, 0), min(first + kernel, size)
        windows.append((slice(start, stop), slice(start - first, stop - first)))
    return windows


class _Products(torch.autograd.Function):
    """A convolution by matrix products; inputs that are channels last become rows of matrices without a copy.

    The output is a matrix, because images would be a view of it, and torch refuses to change views that were made in
    here, as a ReLU in place does.
    """

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, weight: torch.Tensor, plan: _Plan) -> torch.Tensor:
        matrices = [_matrix(weight, piece) for piece in plan.pieces]
        parts = [
            _times(_rows(inputs, piece, matrix), matrix) for piece, matrix in zip(plan.pieces, matrices, strict=True)
        ]
        ctx.save_for_backward(inputs, weight, *matrices)
        ctx.plan = plan
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        inputs, weight, *matrices = ctx.saved_tensors
        plan: _Plan = ctx.plan
        (outer,) = gradients
        by_inputs, by_weight, _ = ctx.needs_input_grad
        if torch.is_grad_enabled():  # a gradient of this gradient is wanted: torch's own can be differentiated
            geometry = (None, plan.stride, plan.padding, (1, 1), False, (0, 0), 1, (by_inputs, by_weight, False))
            images = _images(outer, len(inputs), *plan.output_size)
            return *torch.ops.aten.convolution_backward(images, inputs, weight, *geometry)[:2], None
        columns = torch.split(outer, len(matrices[0]), 1)  # all matrices have as many rows
        parts = [_Part(*part) for part in zip(plan.pieces, matrices, columns, strict=True)]
        return (
            _gradient_by_inputs(inputs, parts) if by_inputs else None,
            _gradient_by_weight(inputs, weight, parts) if by_weight else None,
            None,
        )


def _gradient_by_inputs(inputs: torch.Tensor, parts: Sequence[_Part]) -> torch.Tensor:
    """Return the sum of what each product gives to the pixels that it read."""
    count, channels, height, width = inputs.shape
    shares = [_times(part.outer, part.matrix.t()) for part in parts]
    if len(parts) == 1 and shares[0].numel() == inputs.numel():  # it read every pixel once
        return _images(shares[0], count, height, width)
    gradient = inputs.new_zeros(count * height * width, channels)
    pixels = gradient.view(count, height, width, channels)
    for part, share in zip(parts, shares, strict=True):
        read = pixels[:, *part.piece.pixels]
        read += share.view(read.shape)
    return _images(gradient, count, height, width)


def _gradient_by_weight(inputs: torch.Tensor, weight: torch.Tensor, parts: Sequence[_Part]) -> torch.Tensor | None:
    """Return the gradient, zero at taps that are not in use; or add it to that of the weight and return None."""
    is_added = _is_adding.get() and weight.grad is not None
    gradient = weight.grad if is_added else torch.zeros_like(weight)
    assert gradient is not None
    taps = gradient.permute(0, 2, 3, 1)
    for piece, matrix, outer in parts:
        share = _times(outer.t(), _rows(inputs, piece, matrix).t())
        for number, used in enumerate(piece.taps):
            target = taps[:, *used]
            target += share[number * len(weight) : (number + 1) * len(weight)].view(target.shape)
    return None if is_added else gradient


def _rows(inputs: torch.Tensor, piece: _Piece, matrix: torch.Tensor) -> torch.Tensor:
    """Return the pixels that a product reads, with the columns of its matrix."""
    return inputs.permute(0, 2, 3, 1)[:, *piece.pixels].reshape(-1, matrix.shape[1])


def _matrix(weight: torch.Tensor, piece: _Piece) -> torch.Tensor:
    """Return the weights of the taps in use: a row for each output pixel and channel."""
    taps = weight.permute(0, 2, 3, 1)
    return torch.stack([taps[:, *used] for used in piece.taps]).view(len(piece.taps) * len(weight), -1)


def _images(matrix: torch.Tensor, count: int, height: int, width: int) -> torch.Tensor:
    """Return rows of pixels as images, channels last.

    Maps of 1x1 have the strides of a new tensor. Channels last would be the same memory, but the backward pass of
    BatchNorm compares strides and is ten times slower where those of its input and of the gradient differ.
    """
    if height == width == 1:
        return matrix.view(count, -1, 1, 1)
    return matrix.view(count, height, width, -1).permute(0, 3, 1, 2)


def _times(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return left times right transposed."""
    multiply = _onednn_product()
    if multiply is None or left.dtype != torch.float32:
        return left @ right.t()
    # oneDNN takes its reference code, several hundred times slower, where rows have gaps between them
    return multiply(_without_gaps(left), _without_gaps(right), None, "none", [], "")


def _without_gaps(matrix: torch.Tensor) -> torch.Tensor:
    return matrix if matrix.t().is_contiguous() else matrix.contiguous()


@cache
def _onednn_product() -> Callable[..., torch.Tensor] | None:
    """Return oneDNN's matrix product, or None where torch is built without it.

    `torch.mm` takes MKL, which uses half of the vector width on processors that are not Intel's: on AMD's Zen 5 this
    one is 2.1 times as fast.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return None
    operator = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    return None if operator is None else operator.default


def _is_plain(inputs: torch.Tensor, weight: torch.Tensor) -> bool:
    """Return whether a call computes numbers on a CPU and nothing records or transforms its operations."""
    if inputs.device.type != "cpu" or weight.device.type != "cpu" or inputs.dtype != weight.dtype:
        return False
    if inputs.dtype not in (torch.float32, torch.float64) or torch.is_autocast_enabled("cpu"):
        return False
    is_recorded = torch.compiler.is_compiling() or torch._C._get_tracing_state() or is_in_torch_dispatch_mode()
    return not is_recorded and not torch._C._are_functorch_transforms_active()
