"""FedAvgM: a hand-worked pair of rounds, and what it reduces to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting
from tests.federation import NOISY, build, is_same
from tests.tiny import results, tiny


def one_client() -> QuadraticFederation:
    """F = 1/2 w^2, one step of 0.5: D = -w / 2."""
    size = 12
    return QuadraticFederation(
        curvatures=np.ones((1, size)),
        optima=np.zeros((1, size)),
        examples=np.array([10]),
        steps=np.array([1]),
        means=np.zeros((1, 3)),
        variances=np.ones((1, 3)),
        training=QuadraticTraining(lr=0.5),
        has_buffers=False,
    )


def test_two_rounds_by_hand() -> None:
    # lr 1, beta 0.5. b = -w/2, w1 = w/2; b = -w/4 - w/4 = -w/2, w2 = w/2 - w/2 = 0
    session = one_client().play(build("fedavgm", server_lr=1.0, beta=0.5), 2, Setting(cohort=1))
    start = session.models[0].weights.values
    np.testing.assert_allclose(session.models[1].weights.values, start / 2, rtol=1e-14)
    np.testing.assert_allclose(session.models[2].weights.values, 0.0, atol=1e-15)


def test_two_nesterov_rounds_by_hand() -> None:
    # lr 1, beta 0.5. b = -w/2, move = b/2 + D = -3w/4, w1 = w/4
    # D = -w/8, b = -w/4 - w/8 = -3w/8, move = -3w/16 - w/8 = -5w/16, w2 = -w/16
    session = one_client().play(build("fedavgm", server_lr=1.0, beta=0.5, nesterov=True), 2, Setting(cohort=1))
    start = session.models[0].weights.values
    np.testing.assert_allclose(session.models[1].weights.values, start / 4, rtol=1e-14)
    np.testing.assert_allclose(session.models[2].weights.values, -start / 16, rtol=1e-14)


@pytest.mark.parametrize("nesterov", [False, True])
def test_without_momentum_it_is_fedavg_bit_for_bit(nesterov: bool) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("fedavgm", server_lr=1.0, beta=0.0, nesterov=nesterov), 5)
    assert is_same(session.model, federation.play(build("fedavg"), 5).model)


def test_heavy_ball_and_nesterov_differ() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    plain, ahead = (federation.play(build("fedavgm", nesterov=nesterov), 3) for nesterov in (False, True))
    assert not is_same(plain.model, ahead.model)


@pytest.mark.slow
def test_without_momentum_a_network_trains_as_with_fedavg_bit_for_bit(tmp_path: Path) -> None:
    plain = run(tiny("rounds.count=2"), tmp_path / "fedavg")
    mine = run(tiny("rounds.count=2", "method={name: fedavgm, server_lr: 1.0, beta: 0.0}"), tmp_path / "fedavgm")
    assert results(mine)["model"] == results(plain)["model"]
