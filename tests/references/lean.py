"""FedAvg with error feedback on the way up and differences on the way down. Imports nothing from the package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.references.local import Problem, local_sgd, round_half_even

Compress = Callable[[np.ndarray], np.ndarray]


def lean(
    problem: Problem, up: Compress, down: Compress, first: Compress, statistics: Compress, beta: float
) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """The average of the weights, statistics and counter after every round; everybody holds the initial weights.

    A client that is asked for the first time after round 1 gets its difference through `first`.
    """
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    held = dict.fromkeys(range(len(problem.examples)), problem.weights)
    residual = dict.fromkeys(held, np.zeros_like(w))
    average, trajectory, asked = None, [], set[int]()
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        for i in cohort:
            if (w != held[i]).any():
                held[i] = held[i] + (down if i in asked else first)(w - held[i])
            asked.add(i)
            delta, delta_s, delta_c = local_sgd(problem, i, t, held[i], statistics(s))
            wanted = delta + residual[i]
            sent = up(wanted)
            residual[i] = wanted - sent
            omega = problem.examples[i] / total
            step_w = step_w + omega * sent
            step_s = step_s + omega * statistics(delta_s)
            step_c = step_c + omega * delta_c
        w, s, c = w + step_w, s + step_s, c + round_half_even(step_c)
        average = w if average is None else beta * average + (1 - beta) * w
        trajectory.append((average, s, c))
    return trajectory
