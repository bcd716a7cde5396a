"""FedAdagrad: a hand-worked pair of rounds, and a sum that never shrinks."""

from __future__ import annotations

import numpy as np

from fedreuse.methods.aliases import FedAdagrad
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.federation import NOISY, build


def test_two_rounds_by_hand() -> None:
    """One client, F = 1/2 w^2, one step of 0.5: D = -w / 2; v = tau^2 + D_1^2 + D_2^2."""
    size = 12
    federation = QuadraticFederation(
        curvatures=np.ones((1, size)),
        optima=np.zeros((1, size)),
        examples=np.array([10]),
        steps=np.array([1]),
        means=np.zeros((1, 3)),
        variances=np.ones((1, 3)),
        training=QuadraticTraining(lr=0.5),
        has_buffers=False,
    )
    session = federation.play(build("fedadagrad", server_lr=0.1, tau=0.01), 2, Setting(cohort=1))
    w = federation.initial.weights.values
    first = -w / 2
    v = 0.01**2 + first**2
    w = w + 0.1 * first / (np.sqrt(v) + 0.01)
    second = -w / 2
    v = v + second**2
    w = w + 0.1 * second / (np.sqrt(v) + 0.01)
    np.testing.assert_allclose(session.model.weights.values, w, rtol=1e-12)


def test_there_is_no_momentum_by_default() -> None:
    assert FedAdagrad().beta1 == 0.0


def test_the_second_moment_never_shrinks() -> None:
    session = Session(QuadraticFederation.draw(training=NOISY), build("fedadagrad"), Setting())
    before = session.record.state.step.second.values
    for _ in range(8):
        session.advance(1)
        after = session.record.state.step.second.values
        assert (after >= before).all()
        before = after
