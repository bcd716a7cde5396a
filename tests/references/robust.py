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


def bulyan(rows: np.ndarray, num_bad: int) -> tuple[np.ndarray, set[int]]:
    left = list(range(len(rows)))
    selected: list[int] = []
    while len(selected) < len(rows) - 2 * num_bad:
        scores = []
        for i in left:
            others = sorted(norm(rows[i] - rows[j]) ** 2 for j in left if j != i)
            scores.append((math.fsum(others[: max(1, len(left) - num_bad - 2)]), i))
        selected.append(min(scores)[1])
        left.remove(selected[-1])
    made = []
    for column in rows[selected].T:
        centre = middle(list(column))
        near = sorted(column, key=lambda x: (abs(x - centre), x))[: len(selected) - 2 * num_bad]
        made.append(math.fsum(near) / len(near))
    return np.array(made), set(selected)


def nearest_neighbour_mixing(rows: np.ndarray, num_bad: int) -> np.ndarray:
    near = [sorted(range(len(rows)), key=lambda j: norm(row - rows[j]))[: len(rows) - num_bad] for row in rows]
    return np.array([np.mean(rows[chosen], axis=0) for chosen in near])


def bucketing(rows: np.ndarray, order: list[int], size: int) -> np.ndarray:
    return np.array([np.mean(rows[order[start : start + size]], axis=0) for start in range(0, len(order), size)])
