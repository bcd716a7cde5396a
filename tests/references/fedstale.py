"""FedStale, line by line after docs/methods/fedstale.md Imports nothing from the package."""

from __future__ import annotations

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import Problem, top_k


def fedstale(
    problem: Problem,
    beta: float,
    weights: str = "ratio",
    ratio: float | None = None,
    server_lr: float = 1.0,
    mistake: str = "",
) -> Trajectory:
    """Weights, statistics and counter after every round. `mistake` drops beta from the sum over `all` or `cohort`."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    n, everybody = problem.examples, range(len(problem.examples))
    h = {i: np.zeros_like(w) for i in everybody}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        trained = train(problem, t, cohort, w, s)
        among = sum(n[i] for i in cohort)
        direction = np.zeros_like(w)
        for i in cohort:
            d = trained[i][0] if ratio is None else top_k(trained[i][0], ratio)
            weight = n[i] / among if weights == "ratio" else len(n) / len(cohort) * n[i] / sum(n)
            direction = direction + weight * d - (1.0 if mistake == "cohort" else beta) * weight * h[i]
        for j in everybody:
            direction = direction + (1.0 if mistake == "all" else beta) * n[j] / sum(n) * h[j]
        for i in cohort:
            h[i] = trained[i][0] if ratio is None else top_k(trained[i][0], ratio)
        w = w + server_lr * direction
        s, c = move_statistics(problem, trained, s, c)
        trajectory.append((w, s, c))
    return trajectory
