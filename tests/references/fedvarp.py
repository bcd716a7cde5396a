"""FedVARP, line by line after its card, with the sum over all taken afresh. Imports nothing from the package."""

from __future__ import annotations

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import Problem, top_k


def fedvarp(
    problem: Problem,
    weights: str = "ratio",
    ratio: float | None = None,
    gamma: float = 1.0,
    mistake: str = "",
) -> Trajectory:
    """Weights, statistics and counter after every round; the learning rate falls by `gamma` per round.

    `mistake`: "new h" renews the memory before it is used; "no rescaling" keeps updates at their old learning rate.
    """
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    n, everybody = problem.examples, range(len(problem.examples))
    h = {i: np.zeros_like(w) for i in everybody}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        rate = gamma ** (t - 1)
        unit = 1.0 if mistake == "no rescaling" else rate
        trained = train(problem, t, cohort, w, s, rate)
        d = {i: trained[i][0] if ratio is None else top_k(trained[i][0], ratio) for i in cohort}
        if mistake == "new h":
            h = {**h, **{i: d[i] / unit for i in cohort}}
        among = sum(n[i] for i in cohort)
        v = np.zeros_like(w)
        for i in cohort:
            weight = n[i] / among if weights == "ratio" else len(n) / len(cohort) * n[i] / sum(n)
            v = v + weight * (d[i] - unit * h[i])
        for j in everybody:
            v = v + n[j] / sum(n) * unit * h[j]
        for i in cohort:
            h[i] = d[i] / unit
        w = w + v
        s, c = move_statistics(problem, trained, s, c)
        trajectory.append((w, s, c))
    return trajectory
