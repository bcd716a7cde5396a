"""EF21, line by line after docs/methods/ef21.md Imports nothing from the package."""

from __future__ import annotations

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import Problem, top_k


def ef21(problem: Problem, ratio: float, agg: str, server_lr: float = 1.0) -> Trajectory:
    """Weights, statistics and counter after every round."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    n = problem.examples
    g = {i: np.zeros_like(w) for i in range(len(n))}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        trained = train(problem, t, cohort, w, s)
        for i in cohort:
            g[i] = g[i] + top_k(trained[i][0] - g[i], ratio)
        averaged = cohort if agg == "participants" else tuple(g)
        of = sum(n[i] for i in averaged)
        direction = np.zeros_like(w)
        for i in averaged:
            direction = direction + n[i] / of * g[i]
        w = w + server_lr * direction
        s, c = move_statistics(problem, trained, s, c)
        trajectory.append((w, s, c))
    return trajectory
