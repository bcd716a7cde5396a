"""Three point compressors 2 to 5 with Top-K for every operator, line by line after docs/methods/three_pc.md

Imports nothing from the package.
"""

from __future__ import annotations

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import Problem, top_k


def three_pc(
    problem: Problem, variant: str, ratio: float, base_ratio: float, zeta: float, coins: dict[tuple[int, int], bool]
) -> Trajectory:
    """Weights, statistics and counter after every round; `coins[round, client]` is v5's."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    n = problem.examples
    h = {i: np.zeros_like(w) for i in range(len(n))}
    y = {i: np.zeros_like(w) for i in range(len(n))}
    seen = set()
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        trained = train(problem, t, cohort, w, s)
        among = sum(n[i] for i in cohort)
        direction = np.zeros_like(w)
        for i in cohort:
            x = trained[i][0]
            if variant == "v5":
                h[i] = x if coins[t, i] else h[i] + top_k(x - y[i], ratio)
            else:
                b = h[i]
                if variant == "v2":
                    b = h[i] + top_k(x - y[i], base_ratio)
                elif variant == "v4" or i not in seen or np.sum((x - h[i]) ** 2) > zeta * np.sum((x - y[i]) ** 2):
                    b = h[i] + top_k(x - h[i], base_ratio)
                h[i] = b + top_k(x - b, ratio)
            y[i] = x
            seen.add(i)
            direction = direction + n[i] / among * h[i]
        w = w + direction
        s, c = move_statistics(problem, trained, s, c)
        trajectory.append((w, s, c))
    return trajectory
