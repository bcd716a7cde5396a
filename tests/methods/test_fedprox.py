"""FedProx: the pull by hand, the reductions of its card, and a straight-line reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.aliases import FedProx
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.fedavg import fedavg


def test_two_steps_by_hand() -> None:
    federation = replace(
        QuadraticFederation.draw(1, has_buffers=False),
        curvatures=np.ones((1, 12)),
        optima=np.zeros((1, 12)),
        steps=np.array([2]),
        training=QuadraticTraining(lr=0.1),
    )
    session = federation.play(build("fedprox", mu=2.0), 1, Setting(cohort=1))
    w = federation.initial.weights.values
    # w1 = w - 0.1 w = 0.9 w; w2 = 0.9 w - 0.1 (0.9 w + 2 (0.9 w - w)) = 0.9 w - 0.1 (0.7 w) = 0.83 w
    np.testing.assert_allclose(session.model.weights.values, 0.83 * w, rtol=1e-13)


def test_without_a_pull_it_is_fedavg_bit_for_bit() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    for uplink in (None, top_k(0.3)):
        left, right = (federation.play(build(*parts), 4) for parts in (("fedavg", uplink), ("fedprox", uplink)))
        assert not is_same(left.model, right.model)  # the default pulls
        assert is_same(left.model, federation.play(build("fedprox", uplink, mu=0.0), 4).model)


def test_one_local_step_knows_no_pull() -> None:
    # the penalty's gradient mu (w - w_t) vanishes at w_t
    federation = replace(QuadraticFederation.draw(training=NOISY), steps=np.ones(8, np.int64))
    fedavg_model = federation.play(build("fedavg"), 4).model
    assert is_same(fedavg_model, federation.play(build("fedprox", mu=10.0), 4).model)


def test_a_stronger_pull_never_lengthens_the_update() -> None:
    federation = QuadraticFederation.draw(has_buffers=False)
    start = federation.initial.weights.values
    lengths = []
    for mu in (0.0, 0.1, 0.5, 1.0, 3.0):
        moved = federation.play(build("fedprox", mu=mu), 1, Setting(cohort=1)).model.weights.values
        lengths.append(float(np.linalg.norm(moved - start)))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] < lengths[0]


def test_the_pull_is_the_gradient_of_the_penalty() -> None:
    # central differences of F(w) + mu/2 |w - w_t|^2 against the second step of training
    federation = replace(QuadraticFederation.draw(1, has_buffers=False), steps=np.array([2]))
    mu, lr, start = 0.7, 0.1, federation.initial.weights.values
    curvature, optimum = federation.curvatures[0], federation.optima[0]
    first = start - lr * curvature * (start - optimum)

    def penalised(w: np.ndarray) -> float:
        return float(0.5 * np.sum(curvature * (w - optimum) ** 2) + 0.5 * mu * np.sum((w - start) ** 2))

    eye = 1e-5 * np.eye(len(start))
    gradient = np.array([(penalised(first + e) - penalised(first - e)) / 2e-5 for e in eye])
    second = federation.play(build("fedprox", mu=mu), 1, Setting(cohort=1)).model.weights.values
    np.testing.assert_allclose((first - second) / lr, gradient, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("ratio", [None, 0.3])
def test_equals_the_reference(ratio: float | None) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("fedprox", None if ratio is None else top_k(ratio), mu=0.8), 5)
    wanted = fedavg(plain_problem(federation, 5, 3), mu=0.8, ratio=ratio)
    for model, (weights, statistics, counter) in zip(session.models[1:], wanted, strict=True):
        assert_close(model, weights, statistics, counter)


def test_a_negative_pull_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"method\.mu must not be negative, got -0\.1"):
        FedProx(mu=-0.1)
    with pytest.raises(ConfigError, match=r"method\.server_lr must not be negative"):
        FedProx(server_lr=-1)
