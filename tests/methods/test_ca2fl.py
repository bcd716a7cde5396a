"""CA2FL: its equations in NumPy, given the order of arrivals; two rounds by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.message import Message
from fedreuse.core.population import Population
from fedreuse.methods.ca2fl import Ca2fl
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.asynchronous import arrivals, training
from tests.federation import NOISY, build
from tests.references.fedbuff import ca2fl
from tests.servers import number, start, weight


def test_two_rounds_by_hand() -> None:
    two = Population(np.array([10, 90]))  # numbers of examples do not count
    server, _ = Ca2fl(buffer=1).halves("dense")
    state = start(server, two)
    seen = []
    # round 1: 0 + (4 - 0) = 4, h = 4 / 2; round 2: 2 + (8 - 0) = 10, h = (4 + 8) / 2; round 3: 6 + (2 - 4) = 4
    for t, (client, update) in enumerate([(0, 4.0), (1, 8.0), (0, 2.0)], start=1):
        conversation = server.round(state, Cohort(t, (client,), 1, population=two))
        next(conversation)
        with pytest.raises(StopIteration) as finished:
            conversation.send({client: Message("update", {"update": number(update)})})
        state = finished.value.value[0]
        seen.append(weight(server, state))
    assert seen == [4.0, 14.0, 18.0]


@pytest.mark.parametrize(("buffer", "server_lr"), [(1, 0.5), (2, 1.0), (3, 0.7)])
def test_the_authors_equations(buffer: int, server_lr: float) -> None:
    federation = QuadraticFederation.draw(7, NOISY)
    session = federation.play(build("ca2fl", buffer=buffer, server_lr=server_lr), 15, Setting(cohort=4))
    train = training(federation, 15, 4)
    wanted = ca2fl(session.models[0].weights.values, arrivals(session), train, 7, server_lr)
    for mine, theirs in zip(session.models, wanted, strict=True):
        np.testing.assert_allclose(mine.weights.values, theirs, rtol=1e-11, atol=1e-12)
    assert max(event.age or 0 for event in session.ledger.events) >= 2


def test_ranges() -> None:
    with pytest.raises(ConfigError, match=r"method\.buffer must be at least 1"):
        Ca2fl(buffer=0)
    with pytest.raises(ConfigError, match=r"server_lr"):
        Ca2fl(server_lr=-1)
