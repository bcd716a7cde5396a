"""Asynchronous DG-FedReuse: a round by hand, a straight-line reference, and what it reduces to."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.int_map import IntMap
from fedreuse.core.message import Message
from fedreuse.core.population import Population
from fedreuse.methods.fedreuse_async import FedReuseAsync, FedReuseAsyncState
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.asynchronous import arrivals, at_work, training
from tests.federation import NOISY, build
from tests.references.fedbuff import fedreuse_async
from tests.servers import number, start, weight


def test_a_round_by_hand() -> None:
    population = Population(np.array([10, 30, 20]))
    server, _ = FedReuseAsync(buffer=1, rho=0.5).halves("dense")
    first = start(server, population, 1.0)
    state = FedReuseAsyncState(first.model, first.step, IntMap({1: number(8.0)}), IntMap({1: 3}))
    # round 5: clients 0 and 1 are at work since round 4; 0 replies (age 1); 1 is covered by its update of age 2
    conversation = server.round(state, Cohort(5, (2,), 1, population=population, busy={0: 4, 1: 4}))
    assert dict(next(conversation)) == {}  # two are at work already, and the cohort has one
    with pytest.raises(StopIteration) as finished:
        conversation.send({0: Message("update", {"update": number(4.0)})})
    after, events = finished.value.value
    # 1 + 10/40 * 0.5 * 4 + 30/40 * 0.25 * 8 = 3
    assert weight(server, after) == 3.0
    assert events.counts["covered"] == 1
    assert dict(after.rounds.items()) == {0: 4, 1: 3}


@pytest.mark.parametrize(("buffer", "rho", "max_age"), [(2, 0.8, 10), (2, 1.0, 3), (1, 0.5, 4)])
def test_the_equations(buffer: int, rho: float, max_age: int) -> None:
    federation = QuadraticFederation.draw(7, NOISY)
    method = build("fedreuse_async", buffer=buffer, rho=rho, max_age=max_age, mu=0.0)
    session = federation.play(method, 20, Setting(cohort=4))
    wanted = fedreuse_async(
        session.models[0].weights.values, arrivals(session), at_work(session), training(federation, 20, 4),
        federation.examples, rho, max_age,
    )  # fmt: skip
    for mine, theirs in zip(session.models, wanted, strict=True):
        np.testing.assert_allclose(mine.weights.values, theirs, rtol=1e-11, atol=1e-12)
    assert session.ledger.counts["covered"] > 0


def test_ranges() -> None:
    for wrong, named in (
        ({"rho": 1.5}, "rho"),
        ({"max_age": 0}, "max_age"),
        ({"buffer": 0}, "buffer"),
        ({"mu": -1}, "mu"),
    ):
        with pytest.raises(ConfigError, match=rf"method\.{named} must"):
            FedReuseAsync(**wrong)  # type: ignore[arg-type]
