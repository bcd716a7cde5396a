"""Ditto, line by line after docs/methods/ditto.md Imports nothing from the package.

`wrong` names a mistake: `new anchor` (pull towards the client's own trained copy, as when the global training runs
first on the same object), `fixed` (a hard-coded 0.1 instead of lambda), `shared buffers` (personal statistics replaced
by the received ones).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.references.fedavg import fedavg
from tests.references.local import Problem, local_sgd


@dataclass
class Personal:
    """v_i with statistics and a counter of its own."""

    weights: np.ndarray
    statistics: np.ndarray
    counter: int


def ditto(
    problem: Problem, lam: float, wrong: str = ""
) -> tuple[list[tuple[np.ndarray, np.ndarray, int]], dict[int, Personal]]:
    """The shared model after every round, and the personal models at the end."""
    shared = fedavg(problem)
    received = [(problem.weights, problem.statistics, problem.counter), *shared[:-1]]
    personal: dict[int, Personal] = {}
    for t, (cohort, (w, s, _)) in enumerate(zip(problem.cohorts, received, strict=True), start=1):
        for i in cohort:
            known = personal.get(i, Personal(problem.weights, problem.statistics, problem.counter))
            v, seen = known.weights.copy(), known.statistics.copy()
            if wrong == "shared buffers":
                seen = s.copy()
            anchor = w + local_sgd(problem, i, t, w, s)[0] if wrong == "new anchor" else w
            pull = 0.1 if wrong == "fixed" else lam
            velocity = np.zeros_like(v)
            noise = problem.noise[t, i, "personal batches"]
            for k in range(problem.steps[i]):
                seen = 0.9 * seen + 0.1 * np.concatenate([problem.means[i] + v[:3], problem.variances[i]])
                g = problem.curvatures[i] * (v - problem.optima[i]) + noise[k]
                g = g + pull * (v - anchor) + problem.weight_decay * v
                velocity = problem.momentum * velocity + g
                v = v - problem.lr * velocity
            personal[i] = Personal(v, seen, known.counter + int(problem.steps[i]))
    return shared, personal
