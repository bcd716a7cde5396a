"""Natural compression, coordinate by coordinate. Imports nothing from the package."""

from __future__ import annotations

import math

import numpy as np


def natural(vector: np.ndarray, fractions: np.ndarray) -> np.ndarray:
    """`fractions` has one whole number below 2^23 per coordinate."""
    out = np.zeros_like(vector)
    for j, (number, drawn) in enumerate(zip(vector, fractions, strict=True)):
        x = float(np.float32(number))
        if x == 0:
            continue
        power = 2.0 ** math.floor(math.log2(abs(x)))
        chance = abs(x) / power - 1  # of the larger neighbour
        out[j] = math.copysign(2 * power if chance * 2**23 + float(drawn) >= 2**23 else power, x)
    return out
