"""FedAdam: a hand-worked round, and what it reduces to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting
from tests.federation import NOISY, build


def test_a_round_by_hand() -> None:
    """Two clients, 10 and 30 examples, one step of 0.1 each, all weights at 1."""
    size = 12
    federation = QuadraticFederation(
        curvatures=np.array([[1.0] * size, [3.0] * size]),
        optima=np.array([[2.0] * size, [-2.0] * size]),
        examples=np.array([10, 30]),
        steps=np.array([1, 1]),
        means=np.zeros((2, 3)),
        variances=np.ones((2, 3)),
        training=QuadraticTraining(lr=0.1),
        has_buffers=False,
    )
    w = federation.initial.weights.values
    session = federation.play(build("fedadam", server_lr=0.5, beta1=0.5, beta2=0.75, tau=0.1), 1, Setting(cohort=2))
    # D = -0.25 * 0.1 (w - 2) - 0.75 * 0.3 (w + 2) = -0.25 w - 0.4
    # m = 0.5 D;  v = 0.75 * 0.01 + 0.25 D^2;  w' = w + 0.5 m / (sqrt(v) + 0.1)
    direction = -0.25 * w - 0.4
    wanted = w + 0.25 * direction / (np.sqrt(0.0075 + 0.25 * direction**2) + 0.1)
    np.testing.assert_allclose(session.model.weights.values, wanted, rtol=1e-12)


def test_without_memory_and_with_a_large_tau_it_is_fedavg() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    adam = federation.play(build("fedadam", server_lr=1e13, beta1=0.0, tau=1e13, v0=0.0), 5)
    plain = federation.play(build("fedavg"), 5)
    for one, other in zip(adam.models, plain.models, strict=True):
        np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-11, atol=1e-13)


def test_the_paper_starts_v_at_tau_squared() -> None:
    federation = QuadraticFederation.draw(training=replace(NOISY, noise=0.0))
    default, named, zero = (
        federation.play(build("fedadam", tau=0.1, **start), 3).model.weights.values
        for start in ({}, {"v0": 0.1**2}, {"v0": 0.0})
    )
    np.testing.assert_array_equal(default, named)
    assert not np.allclose(default, zero)
