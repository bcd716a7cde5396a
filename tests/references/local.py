"""One client on its own: local SGD and Top-K, written down line by line. Imports nothing from the package."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass
class Problem:
    """Plain arrays; row i belongs to client i. `noise[round, client, purpose]` is steps (or batches) x size."""

    curvatures: np.ndarray
    optima: np.ndarray
    examples: np.ndarray
    steps: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    weights: np.ndarray
    statistics: np.ndarray
    counter: int
    cohorts: list[tuple[int, ...]]
    noise: dict[tuple[int, int, str], np.ndarray]
    lr: float
    momentum: float
    weight_decay: float


SIZES = (6, 4, 2)  # body.weight, fc.weight, fc.bias
HEAD = slice(6, 12)
STATISTIC_SIZES = (3, 3)  # running_mean, running_var
VARIANCES = slice(3, 6)


def local_sgd(
    problem: Problem, client: int, round_number: int, start: np.ndarray, statistics: np.ndarray, mu: float = 0.0
) -> tuple[np.ndarray, np.ndarray, int]:
    """Differences of weights and statistics, and the number of steps."""
    w = start.copy()
    seen = statistics.copy()
    velocity = None
    noise = problem.noise[round_number, client, "batches"]
    for k in range(problem.steps[client]):
        batch = np.concatenate([problem.means[client] + w[:3], problem.variances[client]])
        seen = 0.9 * seen + 0.1 * batch
        g = problem.curvatures[client] * (w - problem.optima[client]) + noise[k]
        g = g + mu * (w - start)
        g = g + problem.weight_decay * w
        velocity = g if velocity is None else problem.momentum * velocity + g
        w = w - problem.lr * velocity
    return w - start, seen - statistics, int(problem.steps[client])


def head_gradient(
    problem: Problem, client: int, round_number: int, at: np.ndarray, purpose: str, batches: int
) -> np.ndarray:
    """Sum over batches of the gradient of the head."""
    noise = problem.noise[round_number, client, purpose]
    g = np.zeros_like(at)
    for b in range(batches):
        g = g + problem.curvatures[client] * (at - problem.optima[client]) + noise[b]
    return g[HEAD]


def top_k(vector: np.ndarray, ratio: float, sizes: tuple[int, ...] = SIZES) -> np.ndarray:
    """Zero everything but the largest coordinates of each tensor; among equals the smaller index stays."""
    kept = np.zeros_like(vector)
    start = 0
    for size in sizes:
        k = min(size, max(1, math.floor(ratio * size + 1e-9)))
        piece = vector[start : start + size]
        order = sorted(range(size), key=lambda j, piece=piece: (-abs(piece[j]), j))
        for j in order[:k]:
            kept[start + j] = piece[j]
        start += size
    return kept


def round_half_even(number: float) -> int:
    """Python's own rounding."""
    return round(number)
