"""EF21-SGDM and EControl, line by line after their cards. Imports nothing from the package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import Problem, top_k

Estimate = Callable[[int, np.ndarray], np.ndarray]
"""(client, its update) -> the estimate of it that both ends hold from now on."""


def ef21_sgdm(ratio: float, eta: float) -> Estimate:
    """Momentum before the compressor."""
    v: dict[int, np.ndarray] = {}
    g: dict[int, np.ndarray] = {}

    def estimate(i: int, delta: np.ndarray) -> np.ndarray:
        v[i] = delta if i not in v else (1 - eta) * v[i] + eta * delta
        before = g.get(i, np.zeros_like(delta))
        g[i] = before + top_k(v[i] - before, ratio)
        return g[i]

    return estimate


def econtrol(ratio: float, eta: float) -> Estimate:
    """A share of the accumulated error with every difference."""
    h: dict[int, np.ndarray] = {}
    e: dict[int, np.ndarray] = {}

    def estimate(i: int, delta: np.ndarray) -> np.ndarray:
        before, error = h.get(i, np.zeros_like(delta)), e.get(i, np.zeros_like(delta))
        q = top_k(eta * error + delta - before, ratio)
        e[i] = error + delta - before - q
        h[i] = before + q
        return h[i]

    return estimate


def averaged_estimates(problem: Problem, estimate: Estimate, agg: str, server_lr: float = 1.0) -> Trajectory:
    """Weights, statistics and counter after every round, whose direction is the mean of estimates."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    n = problem.examples
    known = {i: np.zeros_like(w) for i in range(len(n))}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        trained = train(problem, t, cohort, w, s)
        for i in cohort:
            known[i] = estimate(i, trained[i][0])
        averaged = cohort if agg == "participants" else tuple(known)
        of = sum(n[i] for i in averaged)
        direction = np.zeros_like(w)
        for i in averaged:
            direction = direction + n[i] / of * known[i]
        w = w + server_lr * direction
        s, c = move_statistics(problem, trained, s, c)
        trajectory.append((w, s, c))
    return trajectory
