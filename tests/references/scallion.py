"""SCALLION and SCAFCOM, line by line after their cards, in gradients as the paper writes them. Imports nothing from
the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.references.local import Problem, round_half_even
from tests.references.scaffold import Options, local_path, normaliser

Compress = Callable[[np.ndarray, int, int], np.ndarray]
"""(vector, round, client) -> what arrives; it must not care for the vector's length."""


@dataclass
class Step:
    """What a round left behind."""

    weights: np.ndarray
    statistics: np.ndarray
    counter: int
    control: np.ndarray
    own: dict[int, np.ndarray]


def scallion(
    problem: Problem, compress: Compress, share: float, averages: bool, eta_g: float = 1.0, wrong: str = ""
) -> list[Step]:
    """`averages`: SCAFCOM, with momentum `share`. `wrong`: `divided` steps by the increment divided by its share."""
    x, s, count = problem.weights.copy(), problem.statistics.copy(), problem.counter
    c, own = np.zeros_like(x), {}
    v: dict[int, np.ndarray] = {}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_x, step_s, step_count, step_c = np.zeros_like(x), np.zeros_like(s), 0.0, np.zeros_like(x)
        for i in cohort:
            c_i = own.get(i, np.zeros_like(x))
            y, seen, _ = local_path(problem, i, t, x, s, c - c_i, inside=True)
            path = normaliser(problem, i, Options()) * problem.lr
            gradient = (x - y) / path - c + c_i
            if averages:
                v[i] = (1 - share) * v.get(i, np.zeros_like(x)) + share * gradient
                increment = v[i] - c_i
            else:
                increment = share * (gradient - c_i)
            arrived = -compress(-increment, t, i)
            own[i] = c_i + arrived
            omega = problem.examples[i] / total
            used = arrived / share if wrong == "divided" else arrived
            step_x = step_x - omega * path * (used + c)
            step_s = step_s + omega * (seen - s)
            step_count = step_count + omega * int(problem.steps[i])
            step_c = step_c + problem.examples[i] / problem.examples.sum() * arrived
        x = x + eta_g * step_x
        s = s + step_s
        count = count + round_half_even(step_count)
        c = c + step_c
        trajectory.append(Step(x, s, count, c, dict(own)))
    return trajectory
