"""STC in both directions, line by line. Imports nothing from the package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.references.local import Problem, local_sgd, round_half_even
from tests.references.ternary import ternary


@dataclass
class Step:
    """What a round left behind."""

    weights: np.ndarray
    statistics: np.ndarray
    counter: int
    residual: np.ndarray
    changed: dict[int, int | None]
    """Coordinates in which each selected client's model differed; None: it had none."""


def stc_updown(problem: Problem, ratio: float, server_ratio: float, server_lr: float = 1.0) -> list[Step]:
    """One step per round."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    left: dict[int, np.ndarray] = {}
    held: dict[int, np.ndarray] = {}
    residual = np.zeros_like(w)
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        changed: dict[int, int | None] = {}
        for i in cohort:
            changed[i] = int(np.count_nonzero(held[i] != w)) if i in held else None
            held[i] = w.copy()
            delta, delta_s, delta_c = local_sgd(problem, i, t, w, s)
            wanted = delta + left.get(i, 0.0)
            sent = ternary(wanted, ratio)
            left[i] = wanted - sent
            omega = problem.examples[i] / total
            step_w = step_w + omega * sent
            step_s = step_s + omega * delta_s
            step_c = step_c + omega * delta_c
        residual = residual + server_lr * step_w
        move = ternary(residual, server_ratio)
        residual = residual - move
        w = w + move
        s = s + step_s
        c = c + round_half_even(step_c)
        trajectory.append(Step(w, s, c, residual, changed))
    return trajectory
