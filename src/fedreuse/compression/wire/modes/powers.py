"""Powers of two: the sign bit and the biased exponent of a float32 per coordinate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import Block, Mode, Notes, Take, add_mode
from fedreuse.compression.wire.packing import check_float, take_bits, unpack_bits

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["FRACTION_BITS", "POWERS"]

FRACTION_BITS = 23


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del count, notes
    check_float(spec, "powers of two")
    return take_bits(take, spec, 1, spec.size), take(np.dtype("u1"), spec.size)


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del notes
    signs, exponents = block.fields
    bits = unpack_bits(signs, 1, spec.size).astype(np.uint32) << 31 | exponents.astype(np.uint32) << FRACTION_BITS
    return None, bits.view(np.float32).astype(spec.dtype)


POWERS = add_mode(Mode(18, "powers", _read, _decode, has_count=False))
