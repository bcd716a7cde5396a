"""FedAvg whose way down carries differences to what each client holds. Imports nothing from the package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.references.local import Problem, local_sgd, round_half_even


def delta_fedavg(
    problem: Problem, compress: Callable[[np.ndarray], np.ndarray], start: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Weights, statistics and counter after every round; a client trains from what it holds, `start` at first."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    held: dict[int, np.ndarray] = {} if start is None else dict.fromkeys(range(len(problem.examples)), start)
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        for i in cohort:
            held[i] = held[i] + compress(w - held[i]) if i in held else w
            delta, delta_s, delta_c = local_sgd(problem, i, t, held[i], s)
            omega = problem.examples[i] / total
            step_w = step_w + omega * delta
            step_s = step_s + omega * delta_s
            step_c = step_c + omega * delta_c
        w = w + step_w
        s = s + step_s
        c = c + round_half_even(step_c)
        trajectory.append((w, s, c))
    return trajectory
