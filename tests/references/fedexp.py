"""FedExP, line by line after docs/methods/fedexp.md. Imports nothing from the package.

`wrong` names a mistake seen in public code: `eps once per client` (eps times the number of clients, as the authors'
program has it), `no half`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.references.averages import move_statistics, train
from tests.references.local import Problem, top_k


@dataclass
class Step:
    """What a round leaves: the model that clients receive next, the one that is evaluated, and the step's length."""

    weights: np.ndarray
    evaluated: np.ndarray
    statistics: np.ndarray
    counter: int
    factor: float


def fedexp(problem: Problem, eps: float, ratio: float | None = None, wrong: str = "") -> list[Step]:
    """Every round."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    steps: list[Step] = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        trained = train(problem, t, cohort, w, s)
        total = sum(problem.examples[i] for i in cohort)
        mean, mean_square = np.zeros_like(w), 0.0
        for i in cohort:
            delta = trained[i][0] if ratio is None else top_k(trained[i][0], ratio)
            mean = mean + problem.examples[i] / total * delta
            mean_square = mean_square + problem.examples[i] / total * sum(x * x for x in delta)
        added = len(cohort) * eps if wrong == "eps once per client" else eps
        factor = max(1.0, mean_square / ((1 if wrong == "no half" else 2) * (sum(x * x for x in mean) + added)))
        before, w = w, w + factor * mean
        s, c = move_statistics(problem, trained, s, c)
        steps.append(Step(w, w if t == 1 else (before + w) / 2, s, c, factor))
    return steps
