"""EF21-SGDM: two rounds by hand, what it reduces to, noise, and a straight-line reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.links.ef21 import Ef21 as Ef21Link
from fedreuse.compression.links.momentum import Momentum
from fedreuse.core.errors import ConfigError
from fedreuse.methods.aliases import Ef21Sgdm
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting
from tests.federation import NOISY, assert_close, build, is_same, one_bowl, plain_problem, top_k
from tests.references.estimates import averaged_estimates, ef21_sgdm


def test_two_rounds_by_hand() -> None:
    # one client, F = 1/2 |w|^2, one step of 0.1: delta = -0.1 w. Nothing is dropped, eta = 1/2.
    # Round 1: v = -0.1 w, w1 = 0.9 w. Round 2: delta = -0.09 w, v = -0.095 w, w2 = 0.805 w
    session = one_bowl().play(build("ef21_sgdm", eta=0.5, codec="dense"), 2, Setting(cohort=1))
    start, first, second = (model.weights.values for model in session.models)
    np.testing.assert_allclose(first, 0.9 * start, rtol=1e-14)
    np.testing.assert_allclose(second, 0.805 * start, rtol=1e-14)


@pytest.mark.parametrize("agg", ["participants", "all"])
def test_with_eta_one_it_is_ef21_bit_for_bit(agg: str) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    mine, plain = (
        federation.play(method, 5)
        for method in (
            build("ef21_sgdm", eta=1.0, agg=agg, codec=top_k(0.3)),
            build("ef21", agg=agg, codec=top_k(0.3)),
        )
    )
    assert is_same(mine.model, plain.model)


def test_without_a_codec_everybody_has_heavy_ball_momentum_at_the_server() -> None:
    # one step of everybody: mean of v = (1 - eta) mean v + eta mean delta, which is momentum with beta = 1 - eta
    federation = replace(QuadraticFederation.draw(has_buffers=False), steps=np.ones(8, np.int64))
    session = federation.play(build("ef21_sgdm", eta=0.4, codec="dense"), 6, Setting(cohort=8))
    alpha = federation.examples / federation.examples.sum()
    w, v = federation.initial.weights.values, None
    for _ in range(6):
        mean = alpha @ (-0.1 * federation.curvatures * (w - federation.optima))
        v = mean if v is None else 0.6 * v + 0.4 * mean
        w = w + v
    np.testing.assert_allclose(session.model.weights.values, w, rtol=1e-11)


@pytest.mark.slow
def test_it_ends_closer_to_the_optimum_than_ef21_if_gradients_are_noisy() -> None:
    drawn = QuadraticFederation.draw(6, QuadraticTraining(lr=0.05, noise=2.0), has_buffers=False)
    federation = replace(drawn, steps=np.ones(6, np.int64))
    alpha = (federation.examples / federation.examples.sum())[:, None]
    optimum = (alpha * federation.curvatures * federation.optima).sum(0) / (alpha * federation.curvatures).sum(0)
    errors = []
    for method in (build("ef21", codec=top_k(0.3)), build("ef21_sgdm", eta=0.1, codec=top_k(0.3))):
        session = federation.play(method, 400, Setting(cohort=6, checkpoint_every=1000))
        errors.append(np.mean([np.sum((one.weights.values - optimum) ** 2) for one in session.models[200:]]))
    assert errors[1] < 0.7 * errors[0]


@pytest.mark.parametrize("agg", ["participants", "all"])
def test_equals_the_reference(agg: str) -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    method = build("ef21_sgdm", eta=0.3, codec=top_k(0.3), agg=agg, server_lr=0.7)
    session = federation.play(method, 6)
    wanted = averaged_estimates(plain_problem(federation, 6, 3), ef21_sgdm(0.3, 0.3), agg, 0.7)
    for model, expected in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *expected)


def test_the_recipe() -> None:
    assert Ef21Sgdm().default_uplink == {"update": Momentum(Ef21Link(), 0.1)}
    with pytest.raises(ConfigError, match=r"momentum\.eta must be in \(0, 1\], got 0"):
        Ef21Sgdm(eta=0)
