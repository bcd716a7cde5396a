"""Asynchronous methods line by line after their cards, given who arrives when. Imports nothing from the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Train = Callable[[int, int, np.ndarray], np.ndarray]
"""(client, round of the request, model) -> update of the weights."""
Order = Sequence[Sequence[tuple[int, int]]]
"""By round, the arrivals: client, and the round in which it was asked."""


def fedbuff(
    start: np.ndarray, order: Order, train: Train, exponent: float = 0.5, server_lr: float = 1.0
) -> list[np.ndarray]:
    """Algorithm 1 of Nguyen et al. (2022): models after every step. w <- w + eta_g / K sum of s(tau) delta."""
    models = [start]
    for t, arrivals in enumerate(order, start=1):
        total = np.zeros_like(start)
        for client, asked in arrivals:
            staleness = t - asked
            total = total + (1 + staleness) ** -exponent * train(client, asked, models[asked - 1])
        models.append(models[-1] + server_lr * total / len(arrivals) if arrivals else models[-1])
    return models


def arrival_order(
    asked: Sequence[Sequence[int]], durations: Sequence[float], buffer: int
) -> list[list[tuple[int, int]]]:
    """Events of a server that keeps as many clients at work as a cohort has, and steps after `buffer` replies.

    `asked`: by round, the cohort in the order in which idle clients are asked. `durations`: seconds between request and
    reply, by client; no client answers in time zero.
    """
    now = 0.0
    at_work: dict[int, tuple[float, int]] = {}
    order = []
    for t, cohort in enumerate(asked, start=1):
        candidates = [client for client in cohort if client not in at_work]
        arrived: list[tuple[int, int]] = []
        while len(arrived) < buffer:
            while candidates and len(at_work) < len(cohort):
                client = candidates.pop(0)
                at_work[client] = (now + durations[client], t)
            now, client = min((when, client) for client, (when, _) in at_work.items())
            arrived.append((client, at_work.pop(client)[1]))
        order.append(arrived)
    return order


def ca2fl(start: np.ndarray, order: Order, train: Train, num_clients: int, server_lr: float = 1.0) -> list[np.ndarray]:
    """Cached update calibration, with the sum over all clients taken afresh in every step."""
    models = [start]
    h = np.zeros((num_clients, len(start)))
    for arrivals in order:
        new = {client: train(client, asked, models[asked - 1]) for client, asked in arrivals}
        v = h.mean(axis=0) + sum(new[client] - h[client] for client in new) / len(new)
        for client, update in new.items():
            h[client] = update
        models.append(models[-1] + server_lr * v)
    return models


def fedasync(start: np.ndarray, order: Order, train: Train, alpha: float, exponent: float) -> list[np.ndarray]:
    """The client's model is mixed into the server's."""
    models = [start]
    for t, ((client, asked),) in enumerate(order, start=1):
        received = models[asked - 1]
        share = alpha * (t - asked + 1) ** -exponent
        models.append((1 - share) * models[-1] + share * (received + train(client, asked, received)))
    return models


def fedreuse_async(
    start: np.ndarray,
    order: Order,
    at_work: Sequence[Sequence[int]],
    train: Train,
    examples: np.ndarray,
    rho: float,
    max_age: int,
) -> list[np.ndarray]:
    """Clients that were at work when the round began, and still are, count with their decayed caches."""
    models = [start]
    cache: dict[int, tuple[np.ndarray, int]] = {}
    for t, (arrivals, busy) in enumerate(zip(order, at_work, strict=True), start=1):
        terms = {client: (train(client, asked, models[asked - 1]), asked) for client, asked in arrivals}
        new = dict(terms)
        for client in busy:
            if client not in new and client in cache and t - cache[client][1] < max_age:
                terms[client] = cache[client]
        total = sum(examples[client] for client in terms)
        direction = sum(examples[c] / total * rho ** (t - trained) * update for c, (update, trained) in terms.items())
        models.append(models[-1] + direction)
        cache |= new
    return models
