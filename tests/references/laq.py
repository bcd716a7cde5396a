"""LAQ, line by line after docs/methods/laq.md, one scale per tensor. Imports nothing from the package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import SIZES, Problem


@dataclass
class Options:
    """The paper's letters; tbar counts participations since the last upload, this one included."""

    b: int
    D: int
    xi: float
    tbar: int
    agg: str
    server_lr: float = 1.0


def float32_at_least(number: float) -> float:
    """The scale as it travels: a float32 that is not below the number."""
    near = np.float32(number)
    return float(np.nextafter(near, np.float32(np.inf)) if float(near) < number else near)


def quantised(vector: np.ndarray, b: int) -> np.ndarray:
    """Nearest of 2^b levels between -R and R, tensor by tensor."""
    result = np.zeros_like(vector)
    tau, start = 1 / (2**b - 1), 0
    for size in SIZES:
        piece = vector[start : start + size]
        r = float32_at_least(float(np.max(np.abs(piece))))
        if r > 0:
            q = np.minimum(np.floor((piece + r) / (2 * tau * r) + 0.5), 2**b - 1)
            result[start : start + size] = 2 * tau * r * q - r
        start += size
    return result


def laq(problem: Problem, options: Options) -> tuple[Trajectory, list[tuple[int, ...]]]:
    """Weights, statistics and counter after every round, and who sent something in it."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    n = problem.examples
    q = {i: np.zeros_like(w) for i in range(len(n))}
    old_error: dict[int, float] = {}
    clock: dict[int, int] = {}
    path = [w]
    trajectory, senders = [], []
    for t, cohort in enumerate(problem.cohorts, start=1):
        moves = [float(np.sum((path[-d] - path[-d - 1]) ** 2)) for d in range(1, min(options.D, t - 1) + 1)]
        movement = sum(options.xi / options.D * move for move in moves) / options.server_lr**2
        trained = train(problem, t, cohort, w, s)
        sent = []
        for i in cohort:
            x = trained[i][0]
            change = quantised(x - q[i], options.b)
            error = float(np.sum((x - q[i] - change) ** 2))
            clock[i] = clock.get(i, 0) + 1
            is_small = i in old_error and np.sum(change**2) <= movement + 3 * (error + old_error[i])
            if not is_small or clock[i] == options.tbar:
                q[i] = q[i] + change
                old_error[i] = error
                clock[i] = 0
                sent.append(i)
        averaged = cohort if options.agg == "participants" else tuple(q)
        of = sum(n[i] for i in averaged)
        direction = np.zeros_like(w)
        for i in averaged:
            direction = direction + n[i] / of * q[i]
        w = w + options.server_lr * direction
        path.append(w)
        s, c = move_statistics(problem, trained, s, c)
        trajectory.append((w, s, c))
        senders.append(tuple(sent))
    return trajectory, senders
