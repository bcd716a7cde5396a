"""EF21: a round by hand, what it reduces to, EF21 on gradient descent, and a straight-line reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.links.ef21 import Ef21 as Link
from fedreuse.core.errors import ConfigError
from fedreuse.core.tensors import is_equal
from fedreuse.methods.aliases import Ef21
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, one_bowl, plain_problem, top_k
from tests.references.ef21 import ef21
from tests.references.local import top_k as kept


def test_two_rounds_by_hand() -> None:
    # one client, F = 1/2 |w|^2, one step of 0.1: delta = -0.1 w; one coordinate of fc.bias = (w_10, w_11) per round.
    # Round 1: the larger moves, g = -0.1 w there; round 2: the larger lacks 0.01 w, the smaller 0.1 w, so unless it is
    # ten times smaller it is the smaller's turn; the larger moves by its old estimate -0.1 w once more.
    federation = one_bowl()
    session = federation.play(build("ef21", agg="participants", codec=top_k(0.3)), 2, Setting(cohort=1))
    w = federation.initial.weights.values[10:]
    big, small = (0, 1) if abs(w[0]) > abs(w[1]) else (1, 0)
    assert abs(w[small]) > abs(w[big]) / 10
    first, second = (model.weights.values[10:] for model in session.models[1:])
    assert (first[big], first[small]) == (pytest.approx(0.9 * w[big]), w[small])
    assert (second[big], second[small]) == (pytest.approx(0.8 * w[big]), pytest.approx(0.9 * w[small]))


def test_a_lossless_codec_over_the_cohort_is_fedavg() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    estimates, plain = (
        federation.play(method, 6) for method in (build("ef21", agg="participants", codec="dense"), build("fedavg"))
    )
    assert is_same(estimates.models[1], plain.models[1])  # g = 0: the first is exact
    for one, other in zip(estimates.models, plain.models, strict=True):
        np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(one.buffers.values, other.buffers.values, rtol=1e-12)


def test_a_lossless_codec_over_all_is_mifa_from_zero() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    estimates, remembered = (
        federation.play(method, 6) for method in (build("ef21", codec="dense", agg="all"), build("mifa"))
    )
    assert is_same(estimates.models[1], remembered.models[1])
    for one, other in zip(estimates.models, remembered.models, strict=True):
        np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-12, atol=1e-14)


def test_with_everybody_both_averages_are_the_same() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    one, other = (
        federation.play(build("ef21", codec=top_k(0.3), agg=agg), 5, Setting(cohort=8))
        for agg in ("participants", "all")
    )
    np.testing.assert_allclose(one.model.weights.values, other.model.weights.values, rtol=1e-11, atol=1e-13)


def test_both_ends_hold_the_same_estimate() -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    session = Session(federation, build("ef21", codec=top_k(0.3), agg="all"), Setting())
    for _ in range(8):
        session.advance(1)
        for client, contact in session.record.contacts.items():
            kept_here = session.store.load(client).memories[contact.ack].uplink["update"]
            assert is_equal(contact.uplink["update"], kept_here)
            assert is_equal(session.record.state.memory[client], kept_here)


@pytest.mark.slow
def test_one_full_step_of_everybody_is_ef21_on_gradient_descent() -> None:
    # g_i <- g_i + C(-lr grad F_i(w) - g_i),  w <- w + sum alpha_i g_i
    federation = replace(QuadraticFederation.draw(has_buffers=False), steps=np.ones(8, np.int64))
    session = federation.play(build("ef21", agg="participants", codec=top_k(0.3)), 40, Setting(cohort=8))
    alpha = federation.examples / federation.examples.sum()
    w, g = federation.initial.weights.values, np.zeros((8, 12))
    for _ in range(40):
        gradients = federation.curvatures * (w - federation.optima)
        g = np.array([g[i] + kept(-0.1 * gradients[i] - g[i], 0.3) for i in range(8)])
        w = w + alpha @ g
    np.testing.assert_allclose(session.model.weights.values, w, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_it_reaches_the_optimum_of_heterogeneous_clients() -> None:
    # the estimates converge to the true updates, so that the mean vanishes at the optimum of one-step clients
    federation = replace(
        QuadraticFederation.draw(3, QuadraticTraining(lr=0.1), has_buffers=False), steps=np.ones(3, np.int64)
    )
    session = federation.play(
        build("ef21", agg="participants", codec=top_k(0.3)), 300, Setting(cohort=3, checkpoint_every=1000)
    )
    alpha = (federation.examples / federation.examples.sum())[:, None]
    optimum = (alpha * federation.curvatures * federation.optima).sum(0) / (alpha * federation.curvatures).sum(0)
    np.testing.assert_allclose(session.model.weights.values, optimum, atol=1e-6)


def test_bytes_are_those_of_the_codec() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    sizes = [
        [row.group_bytes("update") for row in federation.play(method, 4).ledger.rows if row.direction == "up"]
        for method in (build("ef21", agg="participants", codec=top_k(0.3)), build("fedavg", top_k(0.3)))
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("agg", ["participants", "all"])
def test_equals_the_reference(agg: str) -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    session = federation.play(build("ef21", codec=top_k(0.3), agg=agg, server_lr=0.7), 5)
    for model, expected in zip(session.models[1:], ef21(plain_problem(federation, 5, 3), 0.3, agg, 0.7), strict=True):
        assert_close(model, *expected)


def test_the_recipe() -> None:
    assert Ef21().default_uplink == {"update": Link()}
    with pytest.raises(ConfigError, match=r"method\.server_lr must not be negative, got -1"):
        Ef21(server_lr=-1)
