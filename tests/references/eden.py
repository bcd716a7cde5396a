"""EDEN and DRIVE, tensor by tensor, with the matrix written out. Imports nothing from the package."""

from __future__ import annotations

import numpy as np

from tests.references.compressed import by_tensor

LEVELS = {
    1: [1],
    2: [1855, 6187],
    3: [1004, 3097, 5505, 8814],
    4: [526, 1589, 2690, 3860, 5146, 6628, 8475, 11193],
}


def rotation(length: int) -> np.ndarray:
    """H."""
    return np.array([[(-1.0) ** bin(i & j).count("1") for j in range(length)] for i in range(length)])


def eden_bucket(v: np.ndarray, bits: int, unbiased: bool) -> np.ndarray:
    """One bucket whose random signs are already in it; the result still has them."""
    y = rotation(len(v)) @ v
    norm = float(np.sqrt(np.sum(v * v)))
    if norm == 0:
        return np.zeros_like(v)
    k = np.zeros_like(y)
    for j in range(len(y)):
        size = min(LEVELS[bits], key=lambda level: (abs(abs(y[j]) / norm - level / 4096), level))
        k[j] = size if y[j] >= 0 else -size
    along = sum(k[j] * y[j] for j in range(len(y)))
    f = norm * norm / along if unbiased else along / (len(y) * sum(one * one for one in k))
    return f * (rotation(len(v)) @ k)


def eden(vector: np.ndarray, seeds: list[int], bits: int, unbiased: bool, bucket: int) -> np.ndarray:
    """One seed per tensor; a tensor that would not become shorter (8 bytes a number) travels as it is."""
    left = iter(seeds)

    def one(piece: np.ndarray) -> np.ndarray:
        d = len(piece)
        length = bucket
        while length >= 2 * d:
            length //= 2
        count = -(-d // length)
        seed = next(left)
        if 8 + 8 * count + -(-bits * length * count // 8) >= 8 * d:
            return piece.copy()
        words = [int(word) for word in np.random.PCG64(seed).random_raw(-(-d // 64))]
        signs = np.array([-1.0 if words[j // 64] >> (j % 64) & 1 else 1.0 for j in range(d)])
        filled = np.zeros(length * count)
        filled[:d] = signs * piece
        out = np.zeros(length * count)
        for b in range(count):
            out[b::count] = eden_bucket(filled[b::count], bits, unbiased)
        return signs * out[:d]

    return by_tensor(vector, one)
