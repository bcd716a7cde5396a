"""MIFA, line by line after its card, with the sum over all clients taken afresh. Imports nothing from the package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import Problem, top_k


def mifa(
    problem: Problem,
    start: str = "zero",
    ratio: float | None = None,
    server_lr: float = 1.0,
    gamma: float = 1.0,
    mistake: str = "",
    move: Callable[[int, np.ndarray], np.ndarray] | None = None,
) -> Trajectory:
    """Weights, statistics and counter after every round; the learning rate falls by `gamma` per round.

    `mistake`: "no rescaling" keeps updates at their old learning rate.
    """
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    n, everybody = problem.examples, tuple(range(len(problem.examples)))
    table: dict[int, np.ndarray] = {}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        rate = gamma ** (t - 1)
        unit = 1.0 if mistake == "no rescaling" else rate
        asked = everybody if start == "full" and t == 1 else cohort
        trained = train(problem, t, asked, w, s, rate)
        for i in asked:
            table[i] = (trained[i][0] if ratio is None else top_k(trained[i][0], ratio)) / unit
        of = sum(n[j] for j in table) if start == "seen" else sum(n)
        direction = np.zeros_like(w)
        for j in table:
            direction = direction + n[j] / of * unit * table[j]
        w = w + (server_lr * direction if move is None else move(t, direction))
        s, c = move_statistics(problem, trained, s, c)
        trajectory.append((w, s, c))
    return trajectory
