"""The Walsh-Hadamard transform of many vectors, and random signs from a seed: together a cheap random rotation.

H_1 = 1;  H_2n = (H_n  H_n; H_n  -H_n)                H H = n, so applying H twice and dividing by n is the identity

Vectors are the columns of an array, so that every pass adds and subtracts long contiguous rows.
"""

from __future__ import annotations

import numpy as np

__all__ = ["drawn_signs", "hadamard"]


def hadamard(columns: np.ndarray) -> np.ndarray:
    """Return H times every column. `columns` must be contiguous, with a power of two rows, and is overwritten."""
    length, count = columns.shape
    source, target, half = columns, np.empty_like(columns), 1
    while half < length:  # the fast transform: log2(length) passes between two buffers
        pairs, sums = source.reshape(-1, 2, half * count), target.reshape(-1, 2, half * count)
        np.add(pairs[:, 0], pairs[:, 1], out=sums[:, 0])
        np.subtract(pairs[:, 0], pairs[:, 1], out=sums[:, 1])
        source, target, half = target, source, 2 * half
    return source


def drawn_signs(seed: np.uint64, size: int) -> np.ndarray:
    """Return random sign bits, 1 for minus: the bits of raw words of PCG64, least significant first.

    Raw words are used because NumPy guarantees their stream across versions, and both ends must draw the same.
    """
    words = np.random.PCG64(int(seed)).random_raw(-(-size // 64)).astype("<u8", copy=False)
    return np.unpackbits(words.view(np.uint8), count=size, bitorder="little")
