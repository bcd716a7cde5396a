"""The trainer without torch: every step by hand, and sessions that can be stopped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.core.corrections import Correction
from fedreuse.core.local_trainer import BatchPlan
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting, quadratic_schema, with_poison
from tests.federation import NOISY, build, is_same

ONE = replace(
    QuadraticFederation.draw(1),
    curvatures=np.full((1, 12), 2.0),
    optima=np.ones((1, 12)),
    steps=np.array([2]),
    means=np.zeros((1, 3)),
    variances=np.full((1, 3), 3.0),
    training=QuadraticTraining(lr=0.1, momentum=0.5, weight_decay=0.2),
)
W = ONE.initial.weights.values


def trained(**changes: object) -> np.ndarray:
    correction = Correction(**changes) if changes else None
    return ONE.trainer(0, 1).train(ONE.initial, correction).model.weights.values


def test_two_steps_by_hand() -> None:
    # g0 = 2 (w - 1) + 0.2 w; w1 = w - 0.1 g0; v = 0.5 g0 + g1; w2 = w1 - 0.1 v
    g0 = 2 * (W - 1) + 0.2 * W
    w1 = W - 0.1 * g0
    g1 = 2 * (w1 - 1) + 0.2 * w1
    np.testing.assert_allclose(trained(), w1 - 0.1 * (0.5 * g0 + g1), rtol=1e-13)


def test_a_correction_before_and_after_momentum_by_hand() -> None:
    schema = ONE.schema.weights
    anchor, shift = Tensors(schema, np.zeros(12)), Tensors(schema, np.full(12, 0.3))
    g0 = 2 * (W - 1) + 0.5 * W + 0.3 + 0.2 * W
    w1 = W - 0.1 * g0
    g1 = 2 * (w1 - 1) + 0.5 * w1 + 0.3 + 0.2 * w1
    found = trained(shift=shift, pull=0.5, anchor=anchor)
    np.testing.assert_allclose(found, w1 - 0.1 * (0.5 * g0 + g1), rtol=1e-13)
    # after: the step is taken, then the correction at the place it led to
    h0 = 2 * (W - 1) + 0.2 * W
    u = W - 0.1 * h0
    u1 = u - 0.1 * (0.5 * u + 0.3)
    h1 = 2 * (u1 - 1) + 0.2 * u1
    v = u1 - 0.1 * (0.5 * h0 + h1)
    found = trained(shift=shift, pull=0.5, anchor=anchor, place="after_momentum")
    np.testing.assert_allclose(found, v - 0.1 * (0.5 * v + 0.3), rtol=1e-13)


def test_buffers_follow_every_step() -> None:
    result = ONE.trainer(0, 1).train(ONE.initial)
    # var: 1 -> 0.9 + 0.3 = 1.2 -> 1.08 + 0.3 = 1.38
    np.testing.assert_allclose(result.model.buffers["norm.running_var"], 1.38)
    assert result.model.counters.values.tolist() == [2]
    assert (result.steps, result.examples, result.lr, result.momentum) == (2, int(ONE.examples[0]), 0.1, 0.5)


def test_as_many_steps_as_asked() -> None:
    trainer = ONE.trainer(0, 1)
    assert trainer.train(ONE.initial, steps=5).steps == 5
    assert trainer.work.training_steps == 5


def test_gradients_by_hand() -> None:
    trainer = ONE.trainer(0, 1)
    plan = BatchPlan(num_batches=3, batch_size=4)
    found = trainer.gradient(ONE.initial, ("fc.bias", "body.weight"), plan, "p")
    assert [spec.name for spec in found.schema] == ["body.weight", "fc.bias"]
    np.testing.assert_allclose(found.values, 3 * 2 * (W - 1)[[0, 1, 2, 3, 4, 5, 10, 11]], rtol=1e-13)
    assert (trainer.work.proxy_gradients, trainer.work.proxy_examples) == (3, 12)
    mean = trainer.gradient(ONE.initial, ("fc.bias",), replace(plan, is_mean=True), "p")
    np.testing.assert_allclose(mean.values, 2 * (W - 1)[10:], rtol=1e-13)


def test_noise_comes_from_the_streams() -> None:
    noisy = replace(ONE, training=QuadraticTraining(lr=0.1, noise=0.5), steps=np.array([1]))
    found = noisy.trainer(0, 3).train(noisy.initial).model.weights.values
    drawn = stream(noisy.seed, "batches", 3, 0).standard_normal(12)
    np.testing.assert_allclose(found, W - 0.1 * (2 * (W - 1) + 0.5 * drawn), rtol=1e-13)
    plan = BatchPlan(1, 1)
    gradients = [noisy.trainer(0, t).gradient(noisy.initial, ("fc.bias",), plan, "p").values.tolist() for t in (1, 2)]
    assert gradients[0] != gradients[1]
    fixed = replace(plan, is_deterministic=True)
    gradients = [noisy.trainer(0, t).gradient(noisy.initial, ("fc.bias",), fixed, "p").values.tolist() for t in (1, 2)]
    assert gradients[0] == gradients[1]


def test_the_objective_by_hand() -> None:
    metrics = ONE.trainer(0, 1).evaluate(ONE.initial)
    # 1/2 * 2 * |w - 1|^2 per example
    assert metrics.mean_loss == pytest.approx(float(np.sum((W - 1) ** 2)))
    assert ONE.loss(ONE.initial) == pytest.approx(metrics.mean_loss)


def test_training_lowers_the_objective() -> None:
    session = QuadraticFederation.draw().play(build("fedavg"), 20)
    assert session.federation.loss(session.model) < 0.9 * session.federation.loss(session.models[0])


def test_a_federation_without_buffers() -> None:
    federation = QuadraticFederation.draw(2, has_buffers=False)
    assert quadratic_schema(False) == federation.schema
    session = federation.play(build("fedavg"), 2, Setting(cohort=2))
    assert len(session.model.buffers.values) == 0
    assert all(set(crossing.envelope.parcels) <= {"model", "update"} for crossing in session.crossings)


def test_poison_spoils_one_training() -> None:
    federation = with_poison(ONE, (2, 0))
    assert np.isnan(federation.trainer(0, 2).train(ONE.initial).model.weights.values).all()
    assert is_equal(
        federation.trainer(0, 1).train(ONE.initial).model.weights, ONE.trainer(0, 1).train(ONE.initial).model.weights
    )


def test_cohorts_are_the_same_every_time() -> None:
    federation = QuadraticFederation.draw(8)
    assert federation.cohort(3, 4).clients == federation.cohort(3, 4).clients
    assert len({federation.cohort(t, 4).clients for t in range(1, 20)}) > 5
    assert all(list(c) == sorted(set(c)) for c in (federation.cohort(t, 4).clients for t in range(1, 9)))


def test_a_session_stops_and_goes_on() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    method = build("fedavg", {"name": "error_feedback"})
    whole = federation.play(method, 5)
    stopped = federation.play(method, 3, Setting(checkpoint_every=2))
    again = stopped.resumed()
    assert again.round_number == 2  # round 3 was not stored
    again.advance(3)
    assert all(is_same(*pair) for pair in zip(whole.models, again.models, strict=True))
    assert federation.play(method, 1, Setting(checkpoint_every=2)).resumed().round_number == 0
