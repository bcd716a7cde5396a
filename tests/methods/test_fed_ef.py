"""Fed-EF: a round by hand, nothing is lost, what it reduces to, residuals of absent clients, a reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import Method
from fedreuse.core.tensors import is_equal, to_dense
from fedreuse.engine.faults import RandomFaults
from fedreuse.methods.aliases import FedEf
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.compression.links.vectors import Rounded
from tests.federation import NOISY, assert_close, build, is_same, one_bowl, plain_problem, top_k
from tests.references.fed_ef import fed_ef

SIZES = {"body.weight": (6, 1), "fc.weight": (4, 1), "fc.bias": (2, 1)}
"""Coordinates of each tensor, and how many of them Top-K 0.3 keeps."""


def residual(session: Session, client: int) -> np.ndarray:
    """What the client's committed memory holds back; zeros before its first contact."""
    contact = session.record.contacts.get(client)
    if contact is None:
        return np.zeros(12)
    kept: np.ndarray = session.store.load(client).memories[contact.ack].uplink["update"].values
    return kept


def test_two_rounds_by_hand() -> None:
    # one client, F = 1/2 |w|^2, one step of 0.1: delta = -0.1 w. Top-K of one coordinate per tensor.
    # Tensor fc.bias = (w_10, w_11): round 1 sends the larger, the other one's -0.1 w waits; in round 2 it is
    # -0.1 w - 0.1 w = -0.2 w for the one that waited and -0.09 w for the other.
    federation = one_bowl()
    session = federation.play(build("fed_ef", codec=top_k(0.3)), 2, Setting(cohort=1))
    w = federation.initial.weights.values[10:]
    big, small = (0, 1) if abs(w[0]) > abs(w[1]) else (1, 0)
    first, second = (model.weights.values[10:] for model in session.models[1:])
    assert first[big] == pytest.approx(0.9 * w[big])
    assert first[small] == w[small]
    waited, fresh = 0.2 * abs(w[small]), 0.09 * abs(w[big])
    moved = small if waited > fresh else big
    assert second[moved] == pytest.approx(w[small] - 0.2 * w[small] if moved == small else 0.81 * w[big])
    assert second[1 - moved] == first[1 - moved]


def test_the_recipe_is_fedavg_with_error_feedback() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    recipe = federation.play(build("fed_ef", codec=top_k(0.3), decay=0.5), 5)
    by_hand = federation.play(build("fedavg", {"name": "error_feedback", "codec": top_k(0.3), "decay": 0.5}), 5)
    assert is_same(recipe.model, by_hand.model)
    assert [row.total_bytes for row in recipe.ledger.rows] == [row.total_bytes for row in by_hand.ledger.rows]
    assert FedEf().default_uplink == {"update": ErrorFeedback()}


@pytest.mark.parametrize("codec", ["dense", "nonzero", top_k(1.0)], ids=str)
@pytest.mark.parametrize("weights", ["ratio", "ht"])
def test_a_lossless_codec_is_fedavg_bit_for_bit(codec: object, weights: str) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    feedback, plain = (
        federation.play(build(name, weighting=weights, **own), 5)
        for name, own in (("fed_ef", {"codec": codec}), ("fedavg", {}))
    )
    assert all(is_same(*pair) for pair in zip(feedback.models, plain.models, strict=True))
    assert not any(residual(feedback, client).any() for client in range(8))


@pytest.mark.parametrize("faults", [RandomFaults(), RandomFaults(lost=0.2, late=0.25)], ids=["reliable", "unreliable"])
def test_sent_plus_residual_is_the_sum_of_updates(faults: RandomFaults) -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    session = Session(federation, build("fed_ef", codec=top_k(0.3)), Setting(faults=faults))
    sent, wanted = np.zeros((6, 12)), np.zeros((6, 12))
    for number in range(1, 16):
        before = session.model
        session.advance(1)
        absorbed = [row.client for row in session.ledger.rows
                    if row.round_number == number and row.direction == "up" and row.status == "in_time"]  # fmt: skip
        parcels = {
            crossing.client: crossing.envelope.parcels["update"]
            for crossing in session.crossings
            if crossing.direction == "up" and crossing.envelope.round_number == number
        }
        for client in absorbed:
            parcel = parcels[client]
            assert parcel is not None
            sent[client] += to_dense(parcel.decode(federation.schema.weights)).values
            trained = federation.trainer(client, number).train(before).model
            wanted[client] += trained.weights.values - before.weights.values
        for client in range(6):
            np.testing.assert_allclose(sent[client] + residual(session, client), wanted[client], rtol=1e-11, atol=1e-13)


def test_the_residual_of_a_client_that_is_not_selected_waits() -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    session = Session(federation, build("fed_ef", codec=top_k(0.3)), Setting())
    for number in range(1, 9):
        before = {client: residual(session, client) for client in range(6)}
        session.advance(1)
        selected = federation.cohort(number, 3).clients
        for client in range(6):
            is_kept = np.array_equal(residual(session, client), before[client])
            assert is_kept == (client not in selected)


@pytest.mark.parametrize("mistake", ["absent", "undecoded"])
def test_mistakes_of_public_code_differ(mistake: str) -> None:
    # "absent": clients that do not take part renew their residuals; "undecoded": nothing is ever left over
    federation = QuadraticFederation.draw(5, NOISY)
    problem = plain_problem(federation, 5, 3)
    session = federation.play(build("fed_ef", codec=top_k(0.3)), 5)
    right, wrong = fed_ef(problem, 0.3)[-1], fed_ef(problem, 0.3, mistake=mistake)[-1]
    assert_close(session.model, *right)
    assert np.abs(session.model.weights.values - wrong[0]).max() > 1e-3


def test_the_residual_is_taken_from_what_was_decoded() -> None:
    # a codec that changes values: what rounding dropped waits, though every coordinate was sent
    federation = QuadraticFederation.draw(4, NOISY)
    server, client = FedEf().halves("dense")
    method = Method(server, client, {"update": ErrorFeedback(Rounded())})
    session = Session(federation, method, Setting(cohort=4)).advance(1)
    for number in range(4):
        update = federation.trainer(number, 1).train(federation.initial).model.weights.values
        update = update - federation.initial.weights.values
        np.testing.assert_allclose(residual(session, number), update - np.rint(update), rtol=1e-12, atol=1e-14)
        assert residual(session, number).any()


def test_the_residual_is_what_top_k_cannot_hold() -> None:
    # |e'|^2 <= (1 - k/d) |delta + e|^2, tensor by tensor, and the payload has exactly k coordinates
    federation = QuadraticFederation.draw(4, NOISY)
    schema = federation.schema.weights
    session = Session(federation, build("fed_ef", codec=top_k(0.3)), Setting(cohort=4))
    for number in range(1, 6):
        before, old = session.model, [residual(session, client) for client in range(4)]
        session.advance(1)
        for client in range(4):
            trained = federation.trainer(client, number).train(before).model
            wanted = trained.weights.values - before.weights.values + old[client]
            for spec, offset in zip(schema, schema.offsets, strict=False):
                size, kept = SIZES[spec.name]
                part = slice(offset, offset + size)
                left = residual(session, client)[part]
                assert np.sum(left**2) <= (1 - kept / size) * np.sum(wanted[part] ** 2) * (1 + 1e-12)
                assert np.count_nonzero(left) == size - kept


@pytest.mark.slow
def test_with_everybody_and_one_step_it_stays_near_gradient_descent() -> None:
    # Top-K alone settles away from the optimum of heterogeneous clients, error feedback within about a step of it
    federation = replace(
        QuadraticFederation.draw(3, QuadraticTraining(lr=0.05), has_buffers=False), steps=np.ones(3, np.int64)
    )
    alpha = (federation.examples / federation.examples.sum())[:, None]
    optimum = (alpha * federation.curvatures * federation.optima).sum(0) / (alpha * federation.curvatures).sum(0)
    away = {}
    for name, method in (("plain", build("fedavg", top_k(0.3))), ("feedback", build("fed_ef", codec=top_k(0.3)))):
        models = federation.play(method, 200, Setting(cohort=3, checkpoint_every=1000)).models[-50:]
        away[name] = float(np.abs(np.mean([model.weights.values for model in models], axis=0) - optimum).max())
    assert away["feedback"] < 0.05
    assert away["plain"] > 1


def test_top_k_differs_from_error_feedback_after_two_rounds() -> None:
    federation = QuadraticFederation.draw(3)
    plain, feedback = (
        federation.play(method, 2, Setting(cohort=3))
        for method in (build("fedavg", top_k(0.3)), build("fed_ef", codec=top_k(0.3)))
    )
    assert is_same(plain.models[1], feedback.models[1])
    assert not is_equal(plain.models[2].weights, feedback.models[2].weights)


@pytest.mark.parametrize("decay", [1.0, 0.6])
def test_equals_the_reference(decay: float) -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    session = federation.play(build("fed_ef", codec=top_k(0.3), decay=decay, server_lr=0.7), 5)
    wanted = fed_ef(plain_problem(federation, 5, 3), 0.3, decay, 0.7)
    for model, expected in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *expected)


@pytest.mark.parametrize("field", [{"decay": 0.0}, {"decay": 1.5}, {"server_lr": -1.0}])
def test_what_is_refused(field: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{next(iter(field))} must"):
        FedEf(**field)  # type: ignore[arg-type]
