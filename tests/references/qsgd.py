"""QSGD with max-norm buckets, coordinate by coordinate. Imports nothing from the package."""

from __future__ import annotations

import math

import numpy as np

from tests.references.compressed import by_tensor


def qsgd(vector: np.ndarray, uniforms: np.ndarray, bits: int, bucket: int) -> np.ndarray:
    """`uniforms` has one number in [0, 1) per coordinate of all tensors."""
    left = iter(uniforms)

    def one(piece: np.ndarray) -> np.ndarray:
        s = 2 ** (bits - 1) - 1
        out = np.zeros_like(piece)
        for start in range(0, len(piece), bucket):
            part = piece[start : start + bucket]
            scale = max(abs(x) for x in part)
            for j, x in enumerate(part):
                u = next(left)
                if scale == 0:
                    continue
                exact = abs(x) / scale * s
                low = math.floor(exact)
                chance = exact - low  # of the larger magnitude; a small draw goes upwards, for negative x towards zero
                is_larger = u < chance if x > 0 else chance > 0 and u >= 1 - chance
                level = low + 1 if is_larger else low
                out[start + j] = math.copysign(1, x) * scale * level / s
        return out

    return by_tensor(vector, one)
