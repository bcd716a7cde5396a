"""Fed-EF, line by line after docs/methods/fed_ef.md Imports nothing from the package."""

from __future__ import annotations

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import Problem, top_k


def fed_ef(problem: Problem, ratio: float, decay: float = 1.0, server_lr: float = 1.0, mistake: str = "") -> Trajectory:
    """Weights, statistics and counter after every round.

    `mistake`: "absent" renews the residual of clients that do not take part (as if they had trained and sent);
    "undecoded" takes the residual from the update that was meant, not from what was decoded: nothing is left.
    """
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    n, everybody = problem.examples, tuple(range(len(problem.examples)))
    e = {i: np.zeros_like(w) for i in everybody}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        trained = train(problem, t, cohort, w, s)
        computed = train(problem, t, everybody, w, s) if mistake == "absent" else trained
        among = sum(n[i] for i in cohort)
        direction = np.zeros_like(w)
        for i in computed:
            wanted = computed[i][0] + decay * e[i]
            sent = top_k(wanted, ratio)
            e[i] = wanted - (wanted if mistake == "undecoded" else sent)
            if i in cohort:
                direction = direction + n[i] / among * sent
        w = w + server_lr * direction
        s, c = move_statistics(problem, trained, s, c)
        trajectory.append((w, s, c))
    return trajectory
