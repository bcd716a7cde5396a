"""FedAsync: its equation in NumPy, given the order of arrivals; versions are kept as long as requests are under way."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.engine.faults import RandomFaults
from fedreuse.methods.fedasync import FedAsync
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.asynchronous import arrivals, training
from tests.federation import NOISY, build
from tests.references.fedbuff import fedasync


@pytest.mark.parametrize(("alpha", "exponent", "mu"), [(0.6, 0.5, 0.005), (1.0, 0.0, 0.0), (0.3, 1.0, 0.1)])
def test_the_authors_equation(alpha: float, exponent: float, mu: float) -> None:
    federation = QuadraticFederation.draw(7, NOISY)
    session = federation.play(build("fedasync", alpha=alpha, staleness=exponent, mu=mu), 20, Setting(cohort=4))
    train = training(federation, 20, 4, mu)
    wanted = fedasync(session.models[0].weights.values, arrivals(session), train, alpha, exponent)
    for mine, theirs in zip(session.models, wanted, strict=True):
        np.testing.assert_allclose(mine.weights.values, theirs, rtol=1e-11, atol=1e-12)
    assert max(event.age or 0 for event in session.ledger.events) >= 3


def test_versions_are_those_of_requests_under_way() -> None:
    session = QuadraticFederation.draw(7, NOISY).play(
        build("fedasync"), 0, Setting(cohort=4, faults=RandomFaults(lost=0.3))
    )
    for _ in range(20):
        session.advance(1)
        assert len(session.record.state.versions) <= 5
        under_way = {flight.round_number for flight in session.record.flights.values()}
        assert all(any(kept >= sent for kept in session.record.state.versions) for sent in under_way)


def test_ranges() -> None:
    with pytest.raises(ConfigError, match=r"method\.alpha must be in \(0, 1\]"):
        FedAsync(alpha=0)
    with pytest.raises(ConfigError, match=r"method\.staleness must not be negative"):
        FedAsync(staleness=-1)
