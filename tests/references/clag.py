"""CLAG and LAG, line by line after docs/methods/clag.md Imports nothing from the package."""

from __future__ import annotations

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import Problem, top_k


def clag(
    problem: Problem, zeta: float, ratio: float, agg: str = "participants", max_lag: int | None = None
) -> tuple[Trajectory, list[tuple[int, ...]]]:
    """Weights, statistics and counter after every round, and who sent something in it."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    n = problem.examples
    h = {i: np.zeros_like(w) for i in range(len(n))}
    y: dict[int, np.ndarray] = {}
    since: dict[int, int] = {}
    trajectory, senders = [], []
    for t, cohort in enumerate(problem.cohorts, start=1):
        trained = train(problem, t, cohort, w, s)
        sent = []
        for i in cohort:
            x = trained[i][0]
            since[i] = since.get(i, 0) + 1
            is_forced = i not in y or (max_lag is not None and since[i] == max_lag)
            if is_forced or np.sum((x - h[i]) ** 2) > zeta * np.sum((x - y[i]) ** 2):
                h[i] = h[i] + top_k(x - h[i], ratio)
                since[i] = 0
                sent.append(i)
            y[i] = x
        averaged = cohort if agg == "participants" else tuple(h)
        of = sum(n[i] for i in averaged)
        direction = np.zeros_like(w)
        for i in averaged:
            direction = direction + n[i] / of * h[i]
        w = w + direction
        s, c = move_statistics(problem, trained, s, c)
        trajectory.append((w, s, c))
        senders.append(tuple(sent))
    return trajectory, senders
