"""FedAvg with look-back multipliers, line by line after docs/methods/lbgm.md Imports nothing from the package."""

from __future__ import annotations

import numpy as np

from tests.references.local import SIZES, Problem, local_sgd, round_half_even, top_k


def lbgm(
    problem: Problem,
    threshold: float,
    per_model: bool = False,
    ratio: float | None = None,
    with_residual: bool | str = False,
    server_lr: float = 1.0,
) -> list[tuple[np.ndarray, np.ndarray, int, dict[int, list[bool]]]]:
    """Weights, statistics, counter, and per client which pieces went as a number; buffers travel dense."""
    sizes = (sum(SIZES),) if per_model else SIZES
    bounds = [0, *np.cumsum(sizes)]
    pieces = [slice(bounds[k], bounds[k + 1]) for k in range(len(sizes))]
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    look_back: dict[int, np.ndarray] = {}
    residual: dict[int, np.ndarray] = {}
    waiting: dict[int, np.ndarray] = {}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        recycled = {}
        for i in cohort:
            delta, delta_s, delta_c = local_sgd(problem, i, t, w, s)
            wanted = delta + residual.get(i, 0.0)
            g = wanted if ratio is None else top_k(wanted, ratio)
            if with_residual == "separate":
                dropped, g = wanted - g, g + waiting.get(i, 0.0)
            elif with_residual == "one list for both":  # what the codec dropped is added to what it kept
                g = g + (wanted - g)
            sent = g.copy()
            recycled[i] = [False] * len(pieces)
            if i in look_back:
                for k, piece in enumerate(pieces):
                    old = look_back[i][piece]
                    if not old.any():
                        continue
                    inner = float(g[piece] @ old)
                    norm_g, norm_old = float(g[piece] @ g[piece]), float(old @ old)
                    sin2 = 1.0 if norm_g == 0 else 1 - inner * inner / (norm_g * norm_old)
                    if sin2 <= threshold:
                        rho = float(np.float32(inner / norm_old))
                        sent[piece] = rho * old
                        recycled[i][k] = True
            renewed = look_back.get(i, np.zeros_like(w)).copy()
            for k, piece in enumerate(pieces):
                if not recycled[i][k]:
                    renewed[piece] = g[piece]
            look_back[i] = renewed
            if with_residual == "separate":
                residual[i], waiting[i] = dropped, g - sent
            elif with_residual:
                residual[i] = wanted - sent
            omega = problem.examples[i] / total
            step_w = step_w + omega * sent
            step_s = step_s + omega * delta_s
            step_c = step_c + omega * delta_c
        w = w + server_lr * step_w
        s = s + step_s
        c = c + round_half_even(step_c)
        trajectory.append((w, s, c, recycled))
    return trajectory
