"""Low rank: the best products of a matrix, and a sum of products. Imports nothing from the package."""

from __future__ import annotations

import numpy as np


def energies(matrix: np.ndarray) -> np.ndarray:
    """Squared singular values: what each of the best products explains of |W|^2."""
    squares: np.ndarray = np.linalg.svd(matrix.astype(np.float64), compute_uv=False) ** 2
    return squares


def summed(scales: list[float], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The sum of scaled outer products."""
    return sum(s * np.outer(u, v) for s, u, v in zip(scales, left, right, strict=True))
