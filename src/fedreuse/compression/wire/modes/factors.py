"""A matrix as a sum of outer products, each of two vectors of few bits and a scale.

W = sum over j of scale_j * left_j right_j^T      left_j: m levels, right_j: n levels, from -7 to 7

A tensor of shape (s_0, s_1, ...) is the matrix of m = s_0 rows and n = s_1 s_2 ... columns; a vector has one column.
The fields are the scales (32-bit floats) and the levels plus 8, 4 bits each: left_1, right_1, left_2, ... Sums run over
j in this order, in the tensor's dtype and coordinate by coordinate, so that every receiver gets the same bits.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import Block, Mode, Notes, Take, add_mode
from fedreuse.compression.wire.packing import check_float, pack_bits, take_bits, unpack_bits
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["FACTORS", "TOP", "factors_block", "factors_bytes", "matrix_shape"]

TOP = 7
"""The largest level."""
_BITS = 4
_BLOCK = 1 << 15
"""Coordinates that are summed at once, so that temporary arrays stay in the processor's cache."""


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return rows and columns of the matrix that a tensor is read as."""
    return (shape[0], prod(shape[1:])) if shape else (1, 1)


def factors_bytes(shape: tuple[int, int], count: int) -> int:
    """Return the bytes of `count` products of a matrix."""
    return 4 * count + -(-_BITS * count * sum(shape) // 8)


def factors_block(scales: np.ndarray, left: np.ndarray, right: np.ndarray) -> Block:
    """Return a block of outer products.

    Args:
        scales: One number per product.
        left: Levels from -7 to 7, one row per product.
        right: The same for the other side.
    """
    levels = np.concatenate([left, right], axis=1).reshape(-1)
    codes = (levels + (TOP + 1)).astype(np.uint8)
    return Block(FACTORS, len(scales), (scales.astype("<f4"), pack_bits(codes, _BITS)))


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del notes
    check_float(spec, "factors")
    rows, columns = matrix_shape(spec.shape)
    if not 0 <= count <= min(rows, columns):
        raise WireError(f"{spec.name}: {count} products of a matrix of {rows} x {columns}")
    scales = take(np.dtype("<f4"), count)
    codes = take_bits(take, spec, _BITS, count * (rows + columns))
    if (
        unpack_bits(codes, _BITS, count * (rows + columns)).min(initial=1) < 1
    ):  # levels are symmetric, so code 0 has none
        raise WireError(f"{spec.name}: a code below the lowest level")
    return scales, codes


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del notes
    scales, codes = block.fields
    rows, columns = matrix_shape(spec.shape)
    dtype = np.dtype(spec.dtype)
    levels = unpack_bits(codes, _BITS, block.count * (rows + columns)).reshape(block.count, rows + columns)
    sides = levels.astype(dtype) - dtype.type(TOP + 1)
    with np.errstate(over="ignore", invalid="ignore"):  # non-finite scales stay so, and are refused later
        left, right = sides[:, :rows] * scales.astype(dtype)[:, None], sides[:, rows:]
        total = np.zeros((rows, columns), dtype)
        step = max(1, _BLOCK // columns)
        term = np.empty((min(step, rows), columns), dtype)
        for start in range(0, rows, step):
            part = total[start : start + step]
            for one, other in zip(left[:, start : start + step], right, strict=True):
                part += np.multiply(one[:, None], other[None, :], out=term[: len(part)])
    return None, total.reshape(-1)


FACTORS = add_mode(Mode(26, "factors", _read, _decode))
