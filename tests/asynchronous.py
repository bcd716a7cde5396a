"""What tests of asynchronous methods share: who arrived when in a session, and training as a plain function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedreuse.testing.quadratic import QuadraticFederation, Session
from tests.federation import plain_problem
from tests.references.local import local_sgd


def arrivals(session: Session) -> list[list[tuple[int, int]]]:
    """By round, who arrived and when it was asked."""
    order: list[list[tuple[int, int]]] = [[] for _ in range(session.round_number)]
    for event in session.ledger.events:
        if event.outcome == "fresh":
            order[event.round_number - 1].append((event.client, event.round_number - (event.age or 0)))
    return order


def at_work(session: Session) -> list[list[int]]:
    """By round, the clients that had a request under way when it began."""
    asked = [(row.client, row.round_number) for row in session.ledger.rows if row.direction == "down"]
    order = arrivals(session)
    done = {pair: t for t, one in enumerate(order, start=1) for pair in one}
    return [
        sorted(client for client, sent in asked if sent < t and done.get((client, sent), t) >= t)
        for t in range(1, session.round_number + 1)
    ]


def training(
    federation: QuadraticFederation, num_rounds: int, cohort: int, mu: float = 0.0
) -> Callable[[int, int, np.ndarray], np.ndarray]:
    """A client's update of a model that it was sent in a round."""
    problem = plain_problem(federation, num_rounds, cohort)
    return lambda client, asked, model: local_sgd(problem, client, asked, model, problem.statistics, mu)[0]
