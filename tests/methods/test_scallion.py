"""SCALLION: two rounds by hand, the optimum of heterogeneous clients, and a straight-line reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.codecs.qsgd import Qsgd
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError
from fedreuse.core.randomness import stream
from fedreuse.methods.scallion import Scallion
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting
from tests.federation import NOISY, assert_close, build, plain_problem
from tests.references.rand_k import rand_k
from tests.references.scallion import scallion


def two_bowls() -> QuadraticFederation:
    """Client 0: F = 1/2 w^2, 10 examples; client 1: F = 1/2 (w - 4)^2, 30 examples; one step of 0.5 each."""
    return QuadraticFederation(
        curvatures=np.ones((2, 12)),
        optima=np.array([[0.0] * 12, [4.0] * 12]),
        examples=np.array([10, 30]),
        steps=np.array([1, 1]),
        means=np.zeros((2, 3)),
        variances=np.ones((2, 3)),
        training=QuadraticTraining(lr=0.5),
        has_buffers=False,
    )


def test_two_rounds_by_hand() -> None:
    # alpha 1/2, nothing is lost, p = 2. Round 1: dy = -w/2 and -(w - 4)/2, halves of them are sent, their mean is
    # -(w - 3)/4: w1 - 3 = 3/4 (w - 3). c_0 = w/2, c_1 = (w - 4)/2, c = (w - 3)/2.
    # Round 2: dy = -(w1 - 3/2)/2 and -(w1 - 7/2)/2, sent (dy + c/2)/2, direction = mean - c/2 =
    # -(w1 - 3)/4 - c/4 = -(3/16 + 2/16) (w - 3): w2 - 3 = 7/16 (w - 3). 3 is the optimum
    federation = two_bowls()
    session = federation.play(build("scallion", codec="dense", alpha=0.5), 2, Setting(cohort=2))
    start, first, second = (model.weights.values for model in session.models)
    np.testing.assert_allclose(first - 3, 0.75 * (start - 3), rtol=1e-13)
    np.testing.assert_allclose(second - 3, 7 / 16 * (start - 3), rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["dense", {"name": "qsgd", "bits": 4, "bucket": 4}])
def test_it_reaches_the_optimum_of_heterogeneous_clients(codec: object) -> None:
    # several steps and other optima: FedAvg settles beside it; increments vanish, and the codec's error with them
    drawn = QuadraticFederation.draw(5, QuadraticTraining(lr=0.05), has_buffers=False)
    federation = replace(drawn, steps=np.full(5, 4))
    session = federation.play(build("scallion", codec=codec, alpha=0.5), 500, Setting(cohort=5, checkpoint_every=1000))
    alpha = (federation.examples / federation.examples.sum())[:, None]
    optimum = (alpha * federation.curvatures * federation.optima).sum(0) / (alpha * federation.curvatures).sum(0)
    np.testing.assert_allclose(session.model.weights.values, optimum, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_equals_the_reference(alpha: float) -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    codec = {"name": "rand_k", "ratio": 0.5}
    session = federation.play(build("scallion", codec=codec, alpha=alpha, server_lr=0.7), 6)

    def compress(vector: np.ndarray, t: int, i: int) -> np.ndarray:
        rng = stream(federation.seed, "compression up update", t, i)
        return rand_k(vector, [int(rng.integers(0, 2**64, dtype=np.uint64)) for _ in range(3)], 0.5, True)

    problem = plain_problem(federation, 6, 3)
    wanted = scallion(problem, compress, alpha, averages=False, eta_g=0.7)
    for model, step in zip(session.models[1:], wanted, strict=True):
        assert_close(model, step.weights, step.statistics, step.counter)
    np.testing.assert_allclose(session.record.state.control.values, wanted[-1].control, rtol=1e-10)
    if alpha < 1:  # the server steps by the increment, not by the increment divided by its share
        other = scallion(problem, compress, alpha, averages=False, eta_g=0.7, wrong="divided")
        assert not np.allclose(other[-1].weights, wanted[-1].weights, rtol=1e-3)


def test_one_vector_and_one_number_go_up() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    sessions = [federation.play(build(*one), 3) for one in (("scallion", "dense"), ("fedavg",))]
    mine, plain = ([row.group_bytes("update") for row in one.ledger.rows if row.direction == "up"] for one in sessions)
    assert mine == plain


def test_the_recipe() -> None:
    assert Scallion().default_uplink == {"update": Plain(Qsgd(4))}
    for alpha in (0, 1.5):
        with pytest.raises(ConfigError, match=r"method\.alpha must be in \(0, 1\]"):
            Scallion(alpha=alpha)
