"""Random subspace, bucket by bucket, with the matrix written out. Imports nothing from the package."""

from __future__ import annotations

import numpy as np


def subspace_bucket(v: np.ndarray, rows: list[int], unbiased: bool) -> np.ndarray:
    """One bucket whose random signs are already in it; the result still has them."""
    n = len(v)
    h = np.array([[(-1.0) ** bin(i & j).count("1") for j in range(n)] for i in range(n)]) / np.sqrt(n)
    basis = h[rows]  # orthonormal rows
    projected = basis.T @ (basis @ v)
    return projected * n / len(rows) if unbiased else projected
