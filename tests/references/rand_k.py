"""Rand-K, tensor by tensor. Imports nothing from the package."""

from __future__ import annotations

import math

import numpy as np

from tests.references.compressed import by_tensor


def rand_k(vector: np.ndarray, seeds: list[int], ratio: float, unbiased: bool) -> np.ndarray:
    """One seed per tensor; the kept are those with the smallest raw words of PCG64."""
    left = iter(seeds)

    def one(piece: np.ndarray) -> np.ndarray:
        d = len(piece)
        k = min(d, max(1, math.floor(ratio * d + 1e-9)))
        seed = next(left)
        if k == d:
            return piece.copy()
        words = [int(word) for word in np.random.PCG64(seed).random_raw(d)]
        out = np.zeros_like(piece)
        for j in sorted(range(d), key=lambda j: (words[j], j))[:k]:
            out[j] = piece[j] * (d / k if unbiased else 1)
        return out

    return by_tensor(vector, one)
