"""FedBuff: its authors' equations in NumPy, given the order of arrivals, and what it expands to."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.buffered import Buffered
from fedreuse.methods.fedbuff import FedBuff
from fedreuse.methods.server_steps.sgd import SgdStep
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, build, plain_problem
from tests.references.fedbuff import fedbuff
from tests.references.local import local_sgd


def arrivals(session: Session) -> list[list[tuple[int, int]]]:
    """By round, who arrived and when it was asked."""
    order: list[list[tuple[int, int]]] = [[] for _ in range(session.round_number)]
    for event in session.ledger.events:
        if event.outcome == "fresh":
            order[event.round_number - 1].append((event.client, event.round_number - (event.age or 0)))
    return order


@pytest.mark.parametrize(
    ("buffer", "exponent", "server_lr"), [(1, 0.5, 0.5), (2, 0.5, 1.0), (3, 0.0, 0.8), (2, 2.0, 1)]
)
def test_the_authors_equations(buffer: int, exponent: float, server_lr: float) -> None:
    federation = QuadraticFederation.draw(7, NOISY)
    method = build("fedbuff", buffer=buffer, staleness=exponent, server_lr=server_lr)
    session = federation.play(method, 15, Setting(cohort=4))
    problem = plain_problem(federation, 15, 4)

    def train(client: int, asked: int, model: np.ndarray) -> np.ndarray:
        return local_sgd(problem, client, asked, model, problem.statistics)[0]

    wanted = fedbuff(problem.weights, arrivals(session), train, exponent, server_lr)
    for mine, theirs in zip(session.models, wanted, strict=True):
        np.testing.assert_allclose(mine.weights.values, theirs, rtol=1e-12, atol=1e-13)
    ages = [event.age for event in session.ledger.events]
    assert max(age or 0 for age in ages) >= 2  # the test sees updates of several ages


def test_it_expands_to_the_buffered_mean() -> None:
    assert FedBuff(4, 1.0, 0.3).expand() == Buffered(4, 1.0, 0.0, Mean(), SgdStep(0.3))


def test_ranges() -> None:
    with pytest.raises(ConfigError, match=r"method\.buffer must be at least 1"):
        FedBuff(buffer=0)
    with pytest.raises(ConfigError, match=r"method\.server_lr must not be negative"):
        FedBuff(server_lr=-1)
