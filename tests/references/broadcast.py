"""FedAvg whose way down is one estimate that everybody follows. Imports nothing from the package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.references.local import Problem, local_sgd, round_half_even


def broadcast_fedavg(
    problem: Problem, compress: Callable[[np.ndarray], np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Weights, statistics and counter after every round; all clients of a round train from the same estimate."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    estimate = problem.weights.copy()
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        estimate = estimate + compress(w - estimate)
        for i in cohort:
            delta, delta_s, delta_c = local_sgd(problem, i, t, estimate, s)
            omega = problem.examples[i] / total
            step_w = step_w + omega * delta
            step_s = step_s + omega * delta_s
            step_c = step_c + omega * delta_c
        w, s, c = w + step_w, s + step_s, c + round_half_even(step_c)
        trajectory.append((w, s, c))
    return trajectory
