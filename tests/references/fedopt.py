"""FedAdam, FedYogi, FedAdagrad and FedAvgM, line by line after their cards. Imports nothing from the package.

`wrong` names a mistake seen in public code: `late` (bias correction with exponent t + 1), `momentum` (second moment of
the momentum), `inside` (tau inside the square root).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.references.local import Problem, local_sgd, round_half_even, top_k


@dataclass
class Options:
    """The paper's letters."""

    rule: str
    eta: float
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    v0: float | None = None
    bias_correction: bool = False
    nesterov: bool = False
    wrong: str = ""


def server_move(options: Options, t: int, delta: np.ndarray, m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """One step of the server; `m` and `v` are changed in place."""
    if options.rule == "avgm":
        for j in range(len(delta)):
            m[j] = options.beta1 * m[j] + delta[j]
        return np.array(
            [options.eta * (options.beta1 * m[j] + delta[j] if options.nesterov else m[j]) for j in range(len(delta))]
        )
    move = np.zeros_like(delta)
    for j in range(len(delta)):
        m[j] = options.beta1 * m[j] + (1 - options.beta1) * delta[j]
        square = m[j] ** 2 if options.wrong == "momentum" else delta[j] ** 2
        if options.rule == "adam":
            v[j] = options.beta2 * v[j] + (1 - options.beta2) * square
        elif options.rule == "adagrad":
            v[j] = v[j] + square
        elif v[j] > square:
            v[j] = v[j] - (1 - options.beta2) * square
        elif v[j] < square:
            v[j] = v[j] + (1 - options.beta2) * square
        m_hat, v_hat = m[j], v[j]
        if options.bias_correction:
            power = t + 1 if options.wrong == "late" else t
            m_hat = m[j] / (1 - options.beta1**power)
            v_hat = v[j] if options.rule == "adagrad" else v[j] / (1 - options.beta2**power)
        root = math.sqrt(v_hat + options.tau) if options.wrong == "inside" else math.sqrt(v_hat) + options.tau
        move[j] = options.eta * m_hat / root
    return move


def server_steps(options: Options, size: int) -> Callable[[int, np.ndarray], np.ndarray]:
    """The server's moves, round by round, with moments of their own."""
    start = options.tau**2 if options.v0 is None else options.v0
    m, v = np.zeros(size), np.full(size, start)
    return lambda t, delta: server_move(options, t, delta, m, v)


def fedopt(
    problem: Problem, options: Options, ratio: float | None = None, mu: float = 0.0
) -> list[tuple[np.ndarray, np.ndarray, int, np.ndarray, np.ndarray]]:
    """Weights, statistics, counter, first and second moment after every round; buffers bypass the step."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    start = options.tau**2 if options.v0 is None else options.v0
    m, v = np.zeros_like(w), np.full_like(w, start)
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        for i in cohort:
            delta, delta_s, delta_c = local_sgd(problem, i, t, w, s, mu)
            omega = problem.examples[i] / total
            step_w = step_w + omega * (delta if ratio is None else top_k(delta, ratio))
            step_s = step_s + omega * delta_s
            step_c = step_c + omega * delta_c
        w = w + server_move(options, t, step_w, m, v)
        s = s + step_s
        c = c + round_half_even(step_c)
        trajectory.append((w, s, c, m.copy(), v.copy()))
    return trajectory
