"""The quantiser of DoCoFL: nearest of L midpoints, L by doubling and bisection. Imports nothing from the package."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from tests.references.compressed import by_tensor


def nearest(piece: np.ndarray, levels: int) -> list[int]:
    """Index of the nearest midpoint, the larger one at a tie."""
    low, high = min(piece), max(piece)
    return [min(levels - 1, math.floor((x - low) / (high - low) * levels)) for x in piece]


def entropy(indices: list[int]) -> float:
    """Bits per index."""
    counts = Counter(indices)
    return -sum(n / len(indices) * math.log2(n / len(indices)) for n in counts.values())


def num_levels(piece: np.ndarray, bits: float, tolerance: float, most: int = 2**14) -> int:
    """The first L found whose entropy is in [bits - tolerance, bits], or the largest below."""
    good, bad, doubling = int(2**bits), most + 1, True
    while entropy(nearest(piece, good)) < bits - tolerance and bad - good > 1:
        trial = min(2 * good, most) if doubling else (good + bad) // 2
        if entropy(nearest(piece, trial)) <= bits:
            good = trial
        else:
            bad, doubling = trial, False
    return good


def quantise(piece: np.ndarray, bits: float, tolerance: float = 0.1) -> np.ndarray:
    """What arrives of one tensor, unless it travels dense."""
    low, high = min(piece), max(piece)
    if low == high:
        return piece.copy()
    levels = num_levels(piece, bits, tolerance)
    return np.array([low + (high - low) * ((i + 0.5) / levels) for i in nearest(piece, levels)])


def ecuq(vector: np.ndarray, bits: float, is_dense: tuple[bool, ...]) -> np.ndarray:
    """Each tensor; `is_dense` says which are shorter as they are."""
    left = iter(is_dense)
    return by_tensor(vector, lambda piece: piece.copy() if next(left) else quantise(piece, bits))
