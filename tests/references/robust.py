"""Robust rules over a matrix of updates, line by line after their papers. Imports nothing from the package."""

from __future__ import annotations

import math

import numpy as np


def norm(vector: np.ndarray) -> float:
    return math.sqrt(math.fsum(float(x) ** 2 for x in vector))


def middle(numbers: list[float]) -> float:
    ordered, half = sorted(numbers), len(numbers) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def median(rows: np.ndarray) -> np.ndarray:
    return np.array([middle(list(column)) for column in rows.T])


def trimmed_mean(rows: np.ndarray, cut: int) -> np.ndarray:
    return np.array([math.fsum(sorted(column)[cut : len(column) - cut]) / (len(column) - 2 * cut) for column in rows.T])


def clipping(rows: np.ndarray, shares: np.ndarray, bound: float | None, factor: float = 1.0) -> np.ndarray:
    norms = [norm(row) for row in rows]
    limit = factor * middle(norms) if bound is None else bound
    return sum(share * min(1.0, limit / size) * row for share, size, row in zip(shares, norms, rows, strict=True))


def geometric_median(rows: np.ndarray, shares: np.ndarray, steps: int, smoothing: float) -> np.ndarray:
    z = median(rows)
    for _ in range(steps):
        pulls = [share / max(smoothing, norm(row - z)) for share, row in zip(shares, rows, strict=True)]
        z = sum(pull * row for pull, row in zip(pulls, rows, strict=True)) / math.fsum(pulls)
    return z


def centred_clipping(rows: np.ndarray, shares: np.ndarray, steps: int, bound: float | None) -> np.ndarray:
    v = median(rows)
    for _ in range(steps):
        limit = middle([norm(row - v) for row in rows]) if bound is None else bound
        v = v + sum(
            share * min(1.0, limit / max(norm(row - v), 1e-300)) * (row - v)
            for share, row in zip(shares, rows, strict=True)
        )
    return v


def multi_krum(rows: np.ndarray, num_bad: int, keep: int) -> tuple[np.ndarray, set[int]]:
    scores = []
    for i, row in enumerate(rows):
        others = sorted(norm(row - other) ** 2 for j, other in enumerate(rows) if j != i)
        scores.append((math.fsum(others[: len(rows) - num_bad - 2]), i))
    kept = {i for _, i in sorted(scores)[:keep]}
    return sum(rows[i] for i in sorted(kept)) / keep, kept
