"""EvoFed, DeComFL and FedKSeed, line by line after their cards. Imports nothing from the package.

`signs(step, number, size)` are the drawn directions. Losses are quadratics, with noise z' (w - b) of given draws z.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.references.averages import Trajectory, move_statistics, train
from tests.references.local import Problem

Signs = Callable[[int, int, int], np.ndarray]
Noise = dict[tuple[int, int, int], np.ndarray]
"""z by round, client and local step."""


def f4(numbers: np.ndarray) -> np.ndarray:
    """As they are sent."""
    return numbers.astype(np.float32).astype(np.float64)


def evofed(problem: Problem, signs: Signs, population: int, block: int, lr: float, sigma: float) -> Trajectory:
    """Weights, statistics and counter after every round."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        members = [signs(t - 1, n, block) for n in range(population)]
        trained = train(problem, t, cohort, w, s)
        total = sum(problem.examples[i] for i in cohort)
        moved = w.copy()
        for start in range(0, len(w), block):
            part = slice(start, min(start + block, len(w)))
            fitness = np.zeros(population)
            for i in cohort:
                away = [trained[i][0][part] - sigma * e[: part.stop - part.start] for e in members]
                fitness += problem.examples[i] / total * f4(np.array([-np.sum(a * a) for a in away]))
            amounts = f4(lr * (fitness - fitness.mean()) / (2 * sigma * population))
            for n in range(population):
                moved[part] += amounts[n] * members[n][: part.stop - part.start]
        s, c = move_statistics(problem, trained, s, c)
        w = moved
        trajectory.append((w, s, c))
    return trajectory


def slope(problem: Problem, i: int, v: np.ndarray, z: np.ndarray, mu: float, noise: np.ndarray) -> float:
    """Of client i's loss along z."""

    def loss(at: np.ndarray) -> float:
        away = at - problem.optima[i]
        return 0.5 * float(np.sum(problem.curvatures[i] * away * away)) + float(np.sum(noise * away))

    return (loss(v + mu * z) - loss(v - mu * z)) / (2 * mu)


def decomfl(
    problem: Problem, signs: Signs, steps: int, directions: int, lr: float, mu: float, noise: Noise
) -> list[np.ndarray]:
    """Weights after every round."""
    w, trajectory = problem.weights.copy(), []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        mean = np.zeros((steps, directions))
        drawn = [[signs(t - 1, k * directions + p, len(w)) for p in range(directions)] for k in range(steps)]
        for i in cohort:
            v, slopes = w.copy(), np.zeros((steps, directions))
            for k in range(steps):
                slopes[k] = [slope(problem, i, v, z, mu, noise[t, i, k]) for z in drawn[k]]
                v = v - lr / directions * sum(g * z for g, z in zip(slopes[k], drawn[k], strict=True))
            mean += problem.examples[i] / total * f4(slopes)
        amounts = f4(-lr / directions * mean)
        w = w + sum(amounts[k, p] * drawn[k][p] for k in range(steps) for p in range(directions))
        trajectory.append(w)
    return trajectory


def fedkseed(
    problem: Problem, signs: Signs, seeds: int, chosen: dict[tuple[int, int], list[int]], lr: float, mu: float,
    noise: Noise,
) -> list[np.ndarray]:  # fmt: skip
    """Weights after every round; `chosen[round, client]` are the directions of its steps."""
    z = [signs(0, k, len(problem.weights)) for k in range(seeds)]
    amounts, trajectory = np.zeros(seeds), []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        w = problem.weights + sum(a * d for a, d in zip(amounts, z, strict=True))
        change = np.zeros(seeds)
        for i in cohort:
            v, own = w.copy(), np.zeros(seeds)
            for step, k in enumerate(chosen[t, i]):
                g = slope(problem, i, v, z[k], mu, noise[t, i, step])
                v = v - lr * g * z[k]
                own[k] -= lr * g
            change += problem.examples[i] / total * f4(own)
        amounts = f4(amounts + change)
        trajectory.append(problem.weights + sum(a * d for a, d in zip(amounts, z, strict=True)))
    return trajectory
