"""DoCoFL around FedAvg, line by line. Imports nothing from the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.references.local import Problem, local_sgd, round_half_even

Compress = Callable[[np.ndarray], np.ndarray]


@dataclass
class Options:
    """C_w, C_c, Kd, V, and how many rounds the schedule is known ahead."""

    anchor: Compress
    correction: Compress
    every: int
    capacity: int
    look_ahead: int
    measured_from_model: bool = False
    """The mistake: the update is taken against w_t, so that the error of the way down comes back."""


@dataclass
class Step:
    """What a round left behind."""

    weights: np.ndarray
    statistics: np.ndarray
    counter: int
    starts: dict[int, np.ndarray]
    ages: dict[int, int]
    fetched: list[int]


def docofl(problem: Problem, options: Options, num_rounds: int) -> list[Step]:
    """One step per round; the problem's cohorts reach beyond the last."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    anchors: list[tuple[int, np.ndarray]] = []
    held: dict[int, tuple[int, np.ndarray]] = {}
    trajectory = []
    for t in range(1, num_rounds + 1):
        cohort = problem.cohorts[t - 1]
        if (t - 1) % options.every == 0:
            anchors = [(t, options.anchor(w)), *anchors][: options.capacity]
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        starts, ages = {}, {}
        for i in cohort:
            starts[i] = w
            if i in held and held[i][0] in [made for made, _ in anchors]:
                made, y = held[i]
                starts[i] = y + options.correction(w - y)
                ages[i] = t - made
            delta, delta_s, delta_c = local_sgd(problem, i, t, starts[i], s)
            if options.measured_from_model:
                delta = starts[i] + delta - w
            omega = problem.examples[i] / total
            step_w = step_w + omega * delta
            step_s = step_s + omega * delta_s
            step_c = step_c + omega * delta_c
        w = w + step_w
        s = s + step_s
        c = c + round_half_even(step_c)
        soon = {i for later in problem.cohorts[t : t + options.look_ahead] for i in later}
        fetched = sorted(i for i in soon if i not in held or held[i][0] != anchors[0][0])
        for i in fetched:
            held[i] = anchors[0]
        trajectory.append(Step(w, s, c, starts, ages, fetched))
    return trajectory
