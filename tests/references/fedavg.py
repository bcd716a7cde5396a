"""FedAvg, FedProx, Top-K and error feedback, line by line. Imports nothing from the package."""

from __future__ import annotations

import numpy as np

from tests.references.local import Problem, local_sgd, round_half_even, top_k


def fedavg(
    problem: Problem,
    mu: float = 0.0,
    ratio: float | None = None,
    error_feedback: bool = False,
    server_lr: float = 1.0,
) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Weights, statistics and counter after every round; buffers travel dense."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    residual: dict[int, np.ndarray] = {}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        for i in cohort:
            delta, delta_s, delta_c = local_sgd(problem, i, t, w, s, mu)
            sent = delta
            if ratio is not None:
                wanted = delta + residual.get(i, 0.0) if error_feedback else delta
                sent = top_k(wanted, ratio)
                if error_feedback:
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
