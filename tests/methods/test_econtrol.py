"""EControl: two rounds by hand, what it reduces to, where it ends, and a straight-line reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.links.econtrol import EControl as Link
from fedreuse.core.errors import ConfigError
from fedreuse.methods.aliases import EControl
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting
from tests.federation import NOISY, assert_close, build, is_same, one_bowl, plain_problem, top_k
from tests.references.estimates import averaged_estimates, econtrol


def test_two_rounds_by_hand() -> None:
    # one client, F = 1/2 |w|^2, one step of 0.1: delta = -0.1 w; one coordinate of fc.bias per round, eta 1/2.
    # Round 1: the larger, -0.1 w, is sent; the smaller's error is -0.1 w. Round 2: the larger lacks 0.01 w, the smaller
    # -0.1 w, and with half its error -0.15 w: it is sent unless it is fifteen times smaller
    federation = one_bowl()
    session = federation.play(build("econtrol", eta=0.5, codec=top_k(0.3)), 2, Setting(cohort=1))
    w = federation.initial.weights.values[10:]
    big, small = (0, 1) if abs(w[0]) > abs(w[1]) else (1, 0)
    assert abs(w[small]) > abs(w[big]) / 15
    first, second = (model.weights.values[10:] for model in session.models[1:])
    assert (first[big], first[small]) == (pytest.approx(0.9 * w[big]), w[small])
    assert (second[big], second[small]) == (pytest.approx(0.8 * w[big]), pytest.approx(0.85 * w[small]))


@pytest.mark.parametrize("agg", ["participants", "all"])
def test_with_eta_zero_it_is_ef21_bit_for_bit(agg: str) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    mine, plain = (
        federation.play(method, 5)
        for method in (build("econtrol", eta=0.0, agg=agg, codec=top_k(0.3)), build("ef21", agg=agg, codec=top_k(0.3)))
    )
    assert is_same(mine.model, plain.model)


def test_a_lossless_codec_over_the_cohort_is_fedavg() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    mine, plain = (
        federation.play(method, 6) for method in (build("econtrol", agg="participants", codec="dense"), build("fedavg"))
    )
    for one, other in zip(mine.models, plain.models, strict=True):
        np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-11, atol=1e-13)


@pytest.mark.slow
def test_it_reaches_the_optimum_of_heterogeneous_clients() -> None:
    drawn = QuadraticFederation.draw(3, QuadraticTraining(lr=0.1), has_buffers=False)
    federation = replace(drawn, steps=np.ones(3, np.int64))
    method = build("econtrol", eta=0.1, codec=top_k(0.3))
    session = federation.play(method, 300, Setting(cohort=3, checkpoint_every=1000))
    alpha = (federation.examples / federation.examples.sum())[:, None]
    optimum = (alpha * federation.curvatures * federation.optima).sum(0) / (alpha * federation.curvatures).sum(0)
    np.testing.assert_allclose(session.model.weights.values, optimum, atol=1e-4)


@pytest.mark.parametrize("agg", ["participants", "all"])
def test_equals_the_reference(agg: str) -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    session = federation.play(build("econtrol", eta=0.3, codec=top_k(0.3), agg=agg, server_lr=0.7), 6)
    wanted = averaged_estimates(plain_problem(federation, 6, 3), econtrol(0.3, 0.3), agg, 0.7)
    for model, expected in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *expected)


def test_the_recipe() -> None:
    assert EControl().default_uplink == {"update": Link()}
    with pytest.raises(ConfigError, match=r"econtrol\.eta must be in \[0, 1\], got -1"):
        EControl(eta=-1)
