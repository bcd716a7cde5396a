"""SCAFFOLD, line by line after docs/methods/scaffold.md Imports nothing from the package.

`wrong` names a mistake: `no fraction` (server control without |S| / N), `minus c` (dc = c_i+ - c), `weights` (controls
start at the weights), `undecoded` (the client's control from the update it meant, not the one that arrived), `plain K`
(divide by K although the correction passes through the momentum buffer).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.references.local import Problem, round_half_even, top_k


@dataclass
class Options:
    """Settings in the paper's words."""

    option: str = "II"
    inside: bool = True
    derived: bool = False
    weighted: bool = True
    eta_g: float = 1.0
    ratio: float | None = None
    control_ratio: float | None = None
    wrong: str = ""
    move: Callable[[int, np.ndarray], np.ndarray] | None = None


@dataclass
class Step:
    """What a round left behind."""

    weights: np.ndarray
    statistics: np.ndarray
    counter: int
    control: np.ndarray
    own: dict[int, np.ndarray]


def local_path(
    problem: Problem, i: int, t: int, x: np.ndarray, statistics: np.ndarray, shift: np.ndarray, inside: bool
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """y_i, the statistics seen, and the raw gradients met on the way (weight decay included)."""
    y, seen, velocity, met = x.copy(), statistics.copy(), np.zeros_like(x), []
    noise = problem.noise[t, i, "batches"]
    for k in range(problem.steps[i]):
        seen = 0.9 * seen + 0.1 * np.concatenate([problem.means[i] + y[:3], problem.variances[i]])
        g = problem.curvatures[i] * (y - problem.optima[i]) + noise[k] + problem.weight_decay * y
        met.append(g)
        velocity = problem.momentum * velocity + (g + shift if inside else g)
        y = y - problem.lr * velocity
        if not inside:
            y = y - problem.lr * shift
    return y, seen, met


def normaliser(problem: Problem, i: int, options: Options) -> float:
    """K_eff inside the buffer, K outside."""
    steps, beta = int(problem.steps[i]), problem.momentum
    if not options.inside or options.wrong == "plain K":
        return float(steps)
    total = 0.0
    for j in range(steps):
        for power in range(steps - j):
            total += beta**power
    return total


def scaffold(problem: Problem, options: Options) -> list[Step]:
    """One step per round."""
    x, s, count = problem.weights.copy(), problem.statistics.copy(), problem.counter
    num_clients = len(problem.examples)
    begin = x if options.wrong == "weights" else np.zeros_like(x)
    c, own = begin.copy(), {}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_x, step_s, step_count, step_c = np.zeros_like(x), np.zeros_like(s), 0.0, np.zeros_like(x)
        for i in cohort:
            c_i = own.get(i, begin)
            y, seen, _ = local_path(problem, i, t, x, s, c - c_i, options.inside)
            dy = y - x
            sent = dy if options.ratio is None else top_k(dy, options.ratio)
            scale = 1 / (normaliser(problem, i, options) * problem.lr)
            if options.option == "I":
                new = problem.curvatures[i] * (x - problem.optima[i]) + problem.noise[t, i, "control"][0]
            else:
                new = c_i - c - (sent if options.derived else dy) * scale
            dc = new - (c if options.wrong == "minus c" else c_i)
            if options.control_ratio is not None:
                dc = top_k(dc, options.control_ratio)
            own[i] = c_i - c - dy * scale if options.wrong == "undecoded" else c_i + dc
            omega = problem.examples[i] / total
            share = problem.examples[i] / problem.examples.sum() if options.weighted else 1 / num_clients
            if options.wrong == "no fraction":
                share = share * num_clients / len(cohort)
            step_x = step_x + omega * sent
            step_s = step_s + omega * (seen - s)
            step_count = step_count + omega * int(problem.steps[i])
            step_c = step_c + share * dc
        x = x + (options.eta_g * step_x if options.move is None else options.move(t, step_x))
        s = s + step_s
        count = count + round_half_even(step_count)
        c = c + step_c
        trajectory.append(Step(x, s, count, c, dict(own)))
    return trajectory
