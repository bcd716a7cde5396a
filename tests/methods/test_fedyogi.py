"""FedYogi: a hand-worked second moment, and what it shares with FedAdam."""

from __future__ import annotations

import numpy as np

from fedreuse.testing.quadratic import QuadraticFederation
from tests.federation import NOISY, build, is_same


def test_two_rounds_by_hand() -> None:
    """v moves by (1 - beta2) D^2 towards D^2, whichever side it is on."""
    federation = QuadraticFederation.draw(training=NOISY)
    options = {"server_lr": 0.2, "beta1": 0.0, "beta2": 0.75, "tau": 0.5}
    session = federation.play(build("fedyogi", **options), 2)
    moves = [
        after.weights.values - before.weights.values
        for before, after in zip(session.models, session.models[1:], strict=False)
    ]
    # with beta1 = 0 the direction can be told from the move: move = 0.2 D / (sqrt(v) + 0.5)
    direction = federation.play(build("fedavg"), 1).model.weights.values - session.models[0].weights.values
    v = np.full(12, 0.25)
    v = v - 0.25 * direction**2 * np.sign(v - direction**2)
    np.testing.assert_allclose(moves[0], 0.2 * direction / (np.sqrt(v) + 0.5), rtol=1e-12)
    assert {-1.0, 1.0} == set(np.sign(0.25 - direction**2).tolist())  # both sides occur


def test_from_zero_the_first_round_is_fedadams() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    adam, yogi = (federation.play(build(name, v0=0.0), 3) for name in ("fedadam", "fedyogi"))
    np.testing.assert_allclose(adam.models[1].weights.values, yogi.models[1].weights.values, rtol=1e-14)
    assert not is_same(adam.models[3], yogi.models[3])


def test_the_second_moment_stays_positive() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("fedyogi", beta2=0.0), 20)
    assert (session.record.state.step.second.values > 0).all()
