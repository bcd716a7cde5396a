"""ProxSkip and GradSkip step by step, and the heuristic for cohorts. Imports nothing from the package."""

from __future__ import annotations

import numpy as np

from tests.references.local import Problem


def paper(
    problem: Problem, p: float, lengths: list[int], stops: dict[tuple[int, int], int] | None = None
) -> list[tuple[np.ndarray, dict[int, np.ndarray], int]]:
    """w, all h_i and the gradients computed, after every communication; everybody takes part, gradients are exact.

    `lengths`: after how many steps the shared coin fell. `stops`: at which step of a round a private coin fell.
    """
    gamma = problem.lr
    clients = range(len(problem.examples))
    alpha = problem.examples / problem.examples.sum()
    x = {i: problem.weights.copy() for i in clients}
    h = {i: np.zeros_like(problem.weights) for i in clients}
    num_gradients = 0
    trajectory = []
    for t, length in enumerate(lengths, start=1):
        for k in range(1, length + 1):
            h_hat, x_hat = {}, {}
            for i in clients:
                stop = (stops or {}).get((t, i), length + 1)
                gradient = problem.curvatures[i] * (x[i] - problem.optima[i])
                num_gradients += k <= stop  # afterwards x stands still, and nobody needs the gradient
                h_hat[i] = gradient if k == stop else h[i]
                x_hat[i] = x[i] - gamma * (gradient - h_hat[i])
            if k == length:
                mean = sum(alpha[i] * (x_hat[i] - gamma / p * h_hat[i]) for i in clients)
                x = dict.fromkeys(clients, mean)
            else:
                x = x_hat
            h = {i: h_hat[i] + p / gamma * (x[i] - x_hat[i]) for i in clients}
        trajectory.append((x[0].copy(), {i: h[i].copy() for i in clients}, num_gradients))
    return trajectory


def partial(
    problem: Problem,
    num_steps: int,
    stops: dict[tuple[int, int], int] | None = None,
    missed: set[tuple[int, int]] = frozenset(),
) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Weights, statistics and counter after every round of the heuristic: K steps, K_eff as normaliser.

    `missed`: (round, client) that trained but did not hear the new model; they take the mean of the moves since.
    """
    beta, lr = problem.momentum, problem.lr
    k_eff = sum((1 - beta ** (num_steps - j)) / (1 - beta) for j in range(num_steps))
    rate = 1 / (k_eff * lr)
    w, s, c = problem.weights.copy(), problem.statistics.copy(), problem.counter
    models = [w]
    h = {i: np.zeros_like(w) for i in range(len(problem.examples))}
    waiting: dict[int, tuple[np.ndarray, int]] = {}
    trajectory = []
    for t, cohort in enumerate(problem.cohorts, start=1):
        total = sum(problem.examples[i] for i in cohort)
        step_w, step_s, step_c = np.zeros_like(w), np.zeros_like(s), 0.0
        sent = {}
        for i in cohort:
            if i in waiting:
                u, when = waiting.pop(i)
                h[i] = h[i] + rate * ((w - models[when]) / (len(models) - 1 - when) - u)
            stop = (stops or {}).get((t, i), num_steps + 1)
            taken = min(num_steps, stop)
            y, seen, velocity = w.copy(), s.copy(), np.zeros_like(w)
            for k in range(taken):
                batch = np.concatenate([problem.means[i] + y[:3], problem.variances[i]])
                seen = 0.9 * seen + 0.1 * batch
                g = problem.curvatures[i] * (y - problem.optima[i]) + problem.noise[t, i, "batches"][k]
                velocity = beta * velocity + g - h[i] + problem.weight_decay * y
                y = y - lr * velocity
            sent[i] = y - w
            omega = problem.examples[i] / total
            step_w = step_w + omega * sent[i]
            step_s = step_s + omega * (seen - s)
            step_c = step_c + omega * taken
        for i in cohort:
            if (t, i) in missed:
                waiting[i] = (sent[i], len(models) - 1)
            else:
                h[i] = h[i] + rate * (step_w - sent[i])
        w, s, c = w + step_w, s + step_s, c + round(step_c)
        models.append(w)
        trajectory.append((w, s, c))
    return trajectory
