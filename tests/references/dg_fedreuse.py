"""DG-FedReuse, line by line after docs/methods/dg_fedreuse.md Imports nothing from the package."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.references.local import (
    STATISTIC_SIZES,
    VARIANCES,
    Problem,
    head_gradient,
    local_sgd,
    round_half_even,
    top_k,
)


@dataclass
class Options:
    """The paper's letters."""

    tau_0: float
    tau_min: float
    gamma: float
    max_age: int
    quota: float
    rho: float
    mu: float
    ema: float
    batches: int
    ratio: float
    as_weights: bool
    renormalise: bool = False
    drop: bool = False
    move: Callable[[int, np.ndarray], np.ndarray] | None = None


@dataclass
class Step:
    """What a round left behind."""

    weights: np.ndarray
    statistics: np.ndarray
    counter: int
    fresh: dict[int, str]
    scores: dict[int, float]
    ages: dict[int, int]
    kept_variances: int


def cosine_distance(p: np.ndarray, h: np.ndarray) -> float:
    """1 - clipped cosine."""
    cosine = float(p @ h) / (math.sqrt(float(p @ p)) * math.sqrt(float(h @ h)) + 1e-12)
    return 1 - min(1.0, max(-1.0, cosine))


def decide(
    options: Options, t: int, cohort: tuple[int, ...], ages: dict[int, int], scores: dict[int, float]
) -> dict[int, str]:
    """Who is fresh, and why."""
    tau = max(options.tau_min, options.tau_0 * math.exp(-options.gamma * t))
    fresh = {}
    for i in cohort:
        if i not in ages:
            fresh[i] = "no cache"
        elif ages[i] >= options.max_age:
            fresh[i] = "age"
        elif scores[i] >= tau:
            fresh[i] = "score"
    wanted = math.ceil(options.quota * len(cohort) - 1e-9)
    while len(fresh) < wanted:
        left = [i for i in cohort if i not in fresh]
        best = min(left, key=lambda i: (-scores[i], i))
        fresh[best] = "quota"
    return fresh


def dg_fedreuse(problem: Problem, options: Options) -> list[Step]:
    """One step per round."""
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    cache: dict[int, tuple[np.ndarray, np.ndarray, float]] = {}
    origin: dict[int, int] = {}
    signature: dict[int, np.ndarray] = {}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        ages = {i: t - origin[i] for i in cohort if i in origin}
        scores = {
            i: cosine_distance(head_gradient(problem, i, t, w, "gate proxy", options.batches), signature[i])
            for i in ages
            if ages[i] < options.max_age
        }
        fresh = decide(options, t, cohort, ages, scores)
        updates: dict[int, tuple[np.ndarray, np.ndarray, float]] = {}
        for i in fresh:
            delta, delta_s, delta_c = local_sgd(problem, i, t, w, s, options.mu)
            p = head_gradient(problem, i, t, w, "refresh proxy", options.batches)
            signature[i] = p if i not in signature else options.ema * signature[i] + (1 - options.ema) * p
            if options.as_weights:
                delta_s = top_k(delta_s, options.ratio, STATISTIC_SIZES)
            updates[i] = (top_k(delta, options.ratio), delta_s, float(delta_c))

        reused = [i for i in cohort if i not in fresh and not options.drop]
        contributing = sorted([*fresh, *reused])
        total = sum(problem.examples[i] for i in contributing)
        factor = {i: options.rho ** ages[i] if i in reused else 1.0 for i in contributing}
        omega = {i: problem.examples[i] / total for i in contributing}
        if options.renormalise:
            scale = sum(omega[i] * factor[i] for i in contributing)
            omega = {i: omega[i] / scale for i in contributing}
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        for i in contributing:
            x, x_s, x_c = updates[i] if i in fresh else cache[i]
            step_w = step_w + omega[i] * factor[i] * x
            if options.as_weights:
                step_s = step_s + omega[i] * factor[i] * x_s
                step_c = step_c + omega[i] * factor[i] * x_c
        if not options.as_weights:
            among = sum(problem.examples[i] for i in fresh)
            for i in fresh:
                step_s = step_s + problem.examples[i] / among * updates[i][1]
                step_c = step_c + problem.examples[i] / among * updates[i][2]
        w = w + (step_w if options.move is None else options.move(t, step_w))
        moved = s + step_s
        num_kept = 0
        for j in range(VARIANCES.start, VARIANCES.stop):
            if not moved[j] > 0:
                moved[j] = s[j]
                num_kept += 1
        s = moved
        c = c + round_half_even(step_c)
        for i in fresh:
            cache[i] = updates[i]
            origin[i] = t
        trajectory.append(Step(w, s, c, fresh, scores, ages, num_kept))
    return trajectory
