"""The Walsh-Hadamard transform of many vectors at once, and signs that a seed draws: together a cheap rotation.

H_1 = 1;  H_2n = (H_n  H_n; H_n  -H_n)                H H = n: twice, and divided by n, it is the identity

Vectors are the columns of an array, so that every pass adds and subtracts long rows.
"""

from __future__ import annotations

import numpy as np

__all__ = ["drawn_signs", "hadamard"]


def hadamard(columns: np.ndarray) -> np.ndarray:
    """H times every column; their length is a power of two. `columns` is contiguous and is overwritten."""
    length, count = columns.shape
    here, there, half = columns, np.empty_like(columns), 1
    while half < length:
        pairs, sums = here.reshape(-1, 2, half * count), there.reshape(-1, 2, half * count)
        np.add(pairs[:, 0], pairs[:, 1], out=sums[:, 0])
        np.subtract(pairs[:, 0], pairs[:, 1], out=sums[:, 1])
        here, there, half = there, here, 2 * half
    return here


def drawn_signs(seed: np.uint64, size: int) -> np.ndarray:
    """0 for plus, 1 for minus: the bits of raw words of PCG64, least significant first.

    Raw words are used because their stream never changes between versions of NumPy, and both ends must draw the same.
    """
    words = np.random.PCG64(int(seed)).random_raw(-(-size // 64)).astype("<u8", copy=False)
    return np.unpackbits(words.view(np.uint8), count=size, bitorder="little")
