"""SCAFCOM: two rounds by hand, the optimum of heterogeneous clients under Top-K, and a straight-line reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError
from fedreuse.methods.scafcom import Scafcom
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting
from tests.federation import NOISY, assert_close, build, one_bowl, plain_problem, top_k
from tests.references.local import top_k as kept
from tests.references.scallion import scallion


def test_two_rounds_by_hand() -> None:
    # one client, F = 1/2 |w|^2, one step of 0.1, beta 1/2, one coordinate of fc.bias per round; c = c_i, p = 10.
    # Round 1: g = w, v = w/2; the larger is sent: c = w/2 there, w1 = w - 0.1 w/2 = 0.95 w. The smaller: c = 0, stays.
    # Round 2: v = w/4 + g/2. Larger: g = 0.95 w, v = 0.725 w, v - c = 0.225 w. Smaller: g = w, v = 0.75 w, and is sent
    # unless it is more than three times smaller: w2 = 0.925 w; the larger moves by c alone: w2 = 0.95 w - 0.05 w
    federation = one_bowl()
    session = federation.play(build("scafcom", beta=0.5, codec=top_k(0.3)), 2, Setting(cohort=1))
    w = federation.initial.weights.values[10:]
    big, small = (0, 1) if abs(w[0]) > abs(w[1]) else (1, 0)
    assert 0.75 * abs(w[small]) > 0.225 * abs(w[big])
    first, second = (model.weights.values[10:] for model in session.models[1:])
    assert (first[big], first[small]) == (pytest.approx(0.95 * w[big]), pytest.approx(w[small]))
    assert (second[big], second[small]) == (pytest.approx(0.9 * w[big]), pytest.approx(0.925 * w[small]))


@pytest.mark.slow
def test_it_reaches_the_optimum_of_heterogeneous_clients() -> None:
    drawn = QuadraticFederation.draw(5, QuadraticTraining(lr=0.05), has_buffers=False)
    federation = replace(drawn, steps=np.full(5, 4))
    method = build("scafcom", codec=top_k(0.3), beta=0.5)
    session = federation.play(method, 600, Setting(cohort=5, checkpoint_every=1000))
    alpha = (federation.examples / federation.examples.sum())[:, None]
    optimum = (alpha * federation.curvatures * federation.optima).sum(0) / (alpha * federation.curvatures).sum(0)
    np.testing.assert_allclose(session.model.weights.values, optimum, atol=1e-6)


@pytest.mark.parametrize("beta", [1.0, 0.3])
def test_equals_the_reference(beta: float) -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    session = federation.play(build("scafcom", codec=top_k(0.3), beta=beta, server_lr=0.7), 6)
    wanted = scallion(
        plain_problem(federation, 6, 3), lambda vector, t, i: kept(vector, 0.3), beta, averages=True, eta_g=0.7
    )
    for model, step in zip(session.models[1:], wanted, strict=True):
        assert_close(model, step.weights, step.statistics, step.counter)
    np.testing.assert_allclose(session.record.state.control.values, wanted[-1].control, rtol=1e-10, atol=1e-13)


def test_the_recipe() -> None:
    assert Scafcom().default_uplink == {"update": Plain(TopK(0.2))}
    with pytest.raises(ConfigError, match=r"method\.beta must be in \(0, 1\], got 0"):
        Scafcom(beta=0)
    with pytest.raises(ConfigError, match=r"method\.codec must be contractive"):
        Scafcom(RandK(0.2))
