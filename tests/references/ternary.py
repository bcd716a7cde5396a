"""Sparse ternary compression, tensor by tensor. Imports nothing from the package."""

from __future__ import annotations

import math

import numpy as np

from tests.references.compressed import by_tensor


def ternary(vector: np.ndarray, ratio: float) -> np.ndarray:
    """The k largest magnitudes of each tensor become their mean, with their sign; zeros stay zero."""

    def one(piece: np.ndarray) -> np.ndarray:
        k = min(len(piece), max(1, math.floor(ratio * len(piece) + 1e-9)))
        order = sorted(range(len(piece)), key=lambda j: (-abs(piece[j]), j))
        kept = [j for j in order[:k] if piece[j] != 0]
        out = np.zeros_like(piece)
        if kept:
            mu = sum(abs(piece[j]) for j in sorted(kept)) / len(kept)
            for j in kept:
                out[j] = math.copysign(mu, piece[j])
        return out

    return by_tensor(vector, one)
