"""FedAvg with any compressor, with or without a residual at the client. Imports nothing from the package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.references.local import SIZES, Problem, local_sgd, round_half_even

Compress = Callable[[np.ndarray, int, int], np.ndarray]
"""(vector, round, client) -> what arrives."""


def compressed_fedavg(
    problem: Problem, compress: Compress, feedback: bool = False, server_lr: float = 1.0
) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Weights, statistics and counter after every round; buffers travel dense."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    residual: dict[int, np.ndarray] = {}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        for i in cohort:
            delta, delta_s, delta_c = local_sgd(problem, i, t, w, s)
            wanted = delta + residual.get(i, 0.0) if feedback else delta
            sent = compress(wanted, t, i)
            residual[i] = wanted - sent
            omega = problem.examples[i] / total
            step_w = step_w + omega * sent
            step_s = step_s + omega * delta_s
            step_c = step_c + omega * delta_c
        w = w + server_lr * step_w
        s = s + step_s
        c = c + round_half_even(step_c)
        trajectory.append((w, s, c))
    return trajectory


def by_tensor(vector: np.ndarray, one: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Each tensor of a vector through a function, in order."""
    pieces, start = [], 0
    for size in SIZES:
        pieces.append(one(vector[start : start + size]))
        start += size
    return np.concatenate(pieces)
