"""FedAvg: a hand-worked round, the reductions of its card, and a straight-line reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.tensors import is_equal
from fedreuse.methods.aliases import FedAvg
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.fedavg import fedavg


def two_clients(**changes: object) -> QuadraticFederation:
    """F_0 = 1/2 w^2 around 2, F_1 = 3/2 w^2 around -2, one step each, 10 and 30 examples."""
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
    return replace(federation, **changes)


def test_a_round_by_hand() -> None:
    federation = two_clients()
    session = federation.play(build("fedavg"), 1, Setting(cohort=2))
    w = federation.initial.weights.values
    # omega = 10/40, 30/40; delta_0 = -0.1 (w - 2), delta_1 = -0.3 (w + 2)
    # w' = w - 0.025 w + 0.05 - 0.225 w - 0.45 = 0.75 w - 0.4
    np.testing.assert_allclose(session.model.weights.values, 0.75 * w - 0.4, rtol=1e-13)


def test_one_full_step_of_everybody_is_gradient_descent() -> None:
    # m = N, one step: w - lr * sum alpha_i A_i (w - b_i)
    federation = replace(QuadraticFederation.draw(has_buffers=False), steps=np.ones(8, np.int64))
    session = federation.play(build("fedavg"), 1, Setting(cohort=8))
    w, alpha = federation.initial.weights.values, federation.examples / federation.examples.sum()
    gradient = sum(a * c * (w - b) for a, c, b in zip(alpha, federation.curvatures, federation.optima, strict=True))
    np.testing.assert_allclose(session.model.weights.values, w - 0.1 * gradient, rtol=1e-12)


def test_identical_clients_move_the_model_as_one_of_them() -> None:
    federation = QuadraticFederation.draw(4)
    same = {name: np.repeat(getattr(federation, name)[:1], 4, 0) for name in ("curvatures", "optima", "steps")}
    same |= {name: np.repeat(getattr(federation, name)[:1], 4, 0) for name in ("means", "variances")}
    federation = replace(federation, **same)
    trained = federation.trainer(0, 1).train(federation.initial).model
    session = federation.play(build("fedavg"), 1, Setting(cohort=4))
    np.testing.assert_allclose(session.model.weights.values, trained.weights.values, rtol=1e-12)
    np.testing.assert_allclose(session.model.buffers.values, trained.buffers.values, rtol=1e-12)
    assert is_equal(session.model.counters, trained.counters)


def test_counters_move_by_the_rounded_weighted_mean() -> None:
    federation = QuadraticFederation.draw(2)
    federation = replace(federation, examples=np.array([10, 30]), steps=np.array([2, 5]))
    session = federation.play(build("fedavg"), 1, Setting(cohort=2))
    # 2 / 4 + 5 * 3 / 4 = 4.25 -> 4
    assert session.model.counters.values.tolist() == [4]


def test_ratio_one_is_dense_bit_for_bit() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    dense = federation.play(build("fedavg"), 4)
    for link in (top_k(1.0), {"name": "nonzero"}, {"name": "error_feedback", "codec": "dense"},
                 {"name": "error_feedback", "codec": top_k(1.0)}):  # fmt: skip
        assert is_same(federation.play(build("fedavg", link), 4).model, dense.model)
    whole = federation.play(build("fedavg", top_k(1.0), buffers="as_weights"), 4)
    assert is_same(whole.model, dense.model)


def test_the_residual_of_a_lossless_codec_is_zero() -> None:
    link = {"name": "error_feedback", "codec": top_k(1.0)}
    session = QuadraticFederation.draw(training=NOISY).play(build("fedavg", link), 4)
    for record in dict(session.store.items()).values():
        for memory in record.memories.values():
            assert not memory.uplink["update"].values.any()


def test_top_k_differs_from_error_feedback_after_two_rounds() -> None:
    federation = QuadraticFederation.draw(3)
    plain = federation.play(build("fedavg", top_k(0.3)), 2, Setting(cohort=3))
    feedback = federation.play(build("fedavg", {"name": "error_feedback", "codec": top_k(0.3)}), 2, Setting(cohort=3))
    assert is_same(plain.models[1], feedback.models[1])  # the first residual is empty
    assert not is_same(plain.models[2], feedback.models[2])


def test_ratio_and_unbiased_weights_differ_with_unequal_examples() -> None:
    federation = QuadraticFederation.draw()
    ratio, unbiased = (federation.play(build("fedavg", weighting=weights), 1) for weights in ("ratio", "ht"))
    assert not is_equal(ratio.model.weights, unbiased.model.weights)
    # (N / m) alpha_i / omega_i = (8 / 3) (n_S / n): one factor for the whole step
    cohort = federation.cohort(1, 3).clients
    factor = 8 / 3 * federation.examples[list(cohort)].sum() / federation.examples.sum()
    start = federation.initial.weights.values
    step, other = (session.model.weights.values - start for session in (ratio, unbiased))
    np.testing.assert_allclose(other, factor * step, rtol=1e-11)


def test_a_server_step_of_zero_leaves_the_weights_and_the_ledger_runs() -> None:
    federation = QuadraticFederation.draw(has_buffers=False)
    session = federation.play(build("fedavg", server_lr=0.0), 3)
    assert all(is_equal(model.weights, federation.initial.weights) for model in session.models)
    assert [row.round_number for row in session.ledger.rows if row.direction == "up"] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert all(row.total_bytes > 0 for row in session.ledger.rows)


@pytest.mark.slow
def test_fedavg_misses_the_optimum_of_heterogeneous_clients() -> None:
    # several local steps at full participation settle somewhere else than argmin sum alpha_i F_i
    federation = QuadraticFederation.draw(has_buffers=False)
    session = federation.play(build("fedavg"), 120, Setting(cohort=8))
    alpha = (federation.examples / federation.examples.sum())[:, None]
    optimum = (alpha * federation.curvatures * federation.optima).sum(0) / (alpha * federation.curvatures).sum(0)
    np.testing.assert_allclose(session.models[-1].weights.values, session.models[-2].weights.values, atol=1e-9)
    assert np.abs(session.model.weights.values - optimum).max() > 1e-2


@pytest.mark.parametrize("ratio", [None, 0.3])
@pytest.mark.parametrize("server_lr", [1.0, 0.7])
def test_equals_the_reference(ratio: float | None, server_lr: float) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    method = build("fedavg", None if ratio is None else top_k(ratio), server_lr=server_lr)
    session = federation.play(method, 5)
    wanted = fedavg(plain_problem(federation, 5, 3), ratio=ratio, server_lr=server_lr)
    for model, (weights, statistics, counter) in zip(session.models[1:], wanted, strict=True):
        assert_close(model, weights, statistics, counter)


def test_error_feedback_equals_the_reference() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    session = federation.play(build("fedavg", {"name": "error_feedback", "codec": top_k(0.3)}), 5)
    wanted = fedavg(plain_problem(federation, 5, 3), ratio=0.3, error_feedback=True)
    for model, (weights, statistics, counter) in zip(session.models[1:], wanted, strict=True):
        assert_close(model, weights, statistics, counter)


def test_a_negative_step_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"method\.server_lr must not be negative, got -1"):
        FedAvg(server_lr=-1)
