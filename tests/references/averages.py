"""What the references of the averaging kind share: everybody's training, and the mean of statistics and counters.

Imports nothing from the package.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.references.local import Problem, local_sgd, round_half_even

Trained = dict[int, tuple[np.ndarray, np.ndarray, int]]
Trajectory = list[tuple[np.ndarray, np.ndarray, int]]


def train(
    problem: Problem, t: int, cohort: tuple[int, ...], w: np.ndarray, s: np.ndarray, lr_factor: float = 1.0
) -> Trained:
    """Updates of weights and statistics, and steps, of some clients."""
    slower = replace(problem, lr=problem.lr * lr_factor)
    return {i: local_sgd(slower, i, t, w, s) for i in cohort}


def move_statistics(problem: Problem, trained: Trained, s: np.ndarray, c: int) -> tuple[np.ndarray, int]:
    """By the mean of those who trained, weighted by examples."""
    total = sum(problem.examples[i] for i in trained)
    step_s, step_c = np.zeros_like(s), 0.0
    for i in trained:
        step_s = step_s + problem.examples[i] / total * trained[i][1]
        step_c = step_c + problem.examples[i] / total * trained[i][2]
    return s + step_s, c + round_half_even(step_c)
