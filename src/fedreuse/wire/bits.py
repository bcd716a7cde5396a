"""Small whole numbers of a few bits each, one after another without gaps."""

from __future__ import annotations

from math import ceil

import numpy as np

from fedreuse.errors import WireError

__all__ = ["MAX_BITS", "check_padding", "pack_bits", "packed_bytes", "unpack_bits"]

MAX_BITS = 32


def packed_bytes(count: int, bits: int) -> int:
    """Bytes of `count` numbers of `bits` bits."""
    return ceil(count * bits / 8)


def pack_bits(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Numbers below 2^bits as bytes: least significant bit first, number after number; bits beyond the last are zero."""
    planes = np.empty((len(numbers), bits), np.uint8)
    for place in range(bits):
        planes[:, place] = (numbers >> place) & 1
    return np.packbits(planes.reshape(-1), bitorder="little")


def unpack_bits(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The numbers again."""
    planes = np.unpackbits(packed, count=count * bits, bitorder="little").reshape(count, bits)
    numbers = np.zeros(count, np.uint32)
    for place in range(bits):
        numbers |= planes[:, place].astype(np.uint32) << np.uint32(place)
    return numbers


def check_padding(packed: np.ndarray, bits: int, count: int, name: str) -> None:
    """Refuse marks beyond the last number."""
    padding = -count * bits % 8
    if padding and packed[-1] >> (8 - padding):
        raise WireError(f"{name}: bits are set beyond the last of {count} numbers")
