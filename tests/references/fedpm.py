"""FedPM, line by line after its card. Imports nothing from the package; `draws[round, client]` are uniform."""

from __future__ import annotations

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import Problem


def fedpm(problem: Problem, draws: dict[tuple[int, int], np.ndarray], keep: float, limit: float) -> Trajectory:
    """Scores, statistics and counter after every round."""
    s, statistics, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    ones, count, trajectory = np.zeros_like(s), 0.0, []
    for t, cohort in enumerate(problem.cohorts, start=1):
        trained = train(problem, t, cohort, s, statistics)
        ones, count = keep * ones, keep * count
        for i in cohort:
            ones = ones + (draws[t, i] < 1 / (1 + np.exp(-(s + trained[i][0]))))
            count += 1
        theta = np.minimum(np.maximum(ones / count, limit), 1 - limit)
        s = np.round(8 * np.log(theta / (1 - theta))) / 8
        statistics, c = move_statistics(problem, trained, statistics, c)
        trajectory.append((s, statistics, c))
    return trajectory
