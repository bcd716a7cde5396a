"""FedLUAR, line by line after docs/methods/fedluar.md Imports nothing from the package."""

from __future__ import annotations

import numpy as np

from tests.references.local import Problem, local_sgd, round_half_even, top_k


def layer_list(shapes: list[tuple[int, ...]], blocks: int) -> list[tuple[int, list[int]]]:
    """Number and coordinates of all that can be recycled; blocks of the largest count on from the last tensor."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    kernels = [k for k in range(len(shapes)) if len(shapes[k]) > 1]
    biggest = next(k for k in kernels if sizes[k] == max(sizes[j] for j in kernels))
    layers = []
    for k in kernels:
        start, rows = sum(sizes[:k]), shapes[k][0]
        width = sizes[k] // rows
        if k != biggest or blocks == 1:
            layers.append((k, list(range(start, start + sizes[k]))))
            continue
        for b in range(blocks):
            first, last = rows * b // blocks, rows * (b + 1) // blocks
            layers.append((len(shapes) + b, list(range(start + first * width, start + last * width))))
    return layers


def fedluar(
    problem: Problem,
    shapes: list[tuple[int, ...]],
    delta: int,
    blocks: int,
    coins: list[np.random.Generator],
    ratio: float | None = None,
    server_lr: float = 1.0,
) -> list[tuple[np.ndarray, np.ndarray, int, list[int], np.ndarray, list[float]]]:
    """Weights, statistics, counter, what was recycled, U and the scores, after every round."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    layers = layer_list(shapes, blocks)
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    u, scores = np.zeros_like(w), None
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        recycled: list[int] = []
        if scores is not None and delta:
            inverse = [1 / (score + 1e-12) for score in scores]
            chance = np.array(inverse) / sum(inverse)
            drawn = coins[t - 1].choice(len(layers), delta, replace=False, p=chance)
            recycled = sorted(layers[j][0] for j in drawn)
        silent = [j for number, places in layers if number in recycled for j in places]
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        for i in cohort:
            update, delta_s, delta_c = local_sgd(problem, i, t, w, s)
            sent = np.zeros_like(w)
            start = 0
            for size in sizes:
                there = [j for j in range(start, start + size) if j not in silent]
                if there:
                    piece = update[there]
                    sent[there] = piece if ratio is None else top_k(piece, ratio, (len(there),))
                start += size
            omega = problem.examples[i] / total
            step_w = step_w + omega * sent
            step_s = step_s + omega * delta_s
            step_c = step_c + omega * delta_c
        step_w[silent] = u[silent]
        fresh = [np.linalg.norm(step_w[places]) / (np.linalg.norm(w[places]) + 1e-6) for _, places in layers]
        if scores is None:
            scores = fresh
        else:
            scores = [
                old if number in recycled else new for old, new, (number, _) in zip(scores, fresh, layers, strict=True)
            ]
        u = step_w
        w = w + server_lr * step_w
        s = s + step_s
        c = c + round_half_even(step_c)
        trajectory.append((w, s, c, recycled, u, list(scores)))
    return trajectory
