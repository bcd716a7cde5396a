"""Error feedback: what is dropped waits, and nothing is lost for good."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.codecs.eden import Eden
from fedreuse.compression.codecs.top_k import TopK, kept_count
from fedreuse.compression.links.error_feedback import Dated, ErrorFeedback
from fedreuse.core.errors import ConfigError, WireError
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, pick, to_dense
from fedreuse.engine.faults import RandomFaults
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, build

SCHEMA = Schema((TensorSpec("a", (4,), "float64"),))
CONTEXT = LinkContext(SCHEMA, 1, 0, np.random.default_rng(0))
LINK = ErrorFeedback(TopK(0.25))


def tensors(*numbers: float) -> Tensors:
    return Tensors(SCHEMA, np.array(numbers, np.float64))


def test_two_sends_by_hand() -> None:
    # (4, 3, 1, 0): 4 is sent, (0, 3, 1, 0) waits
    parcel, state = LINK.send(tensors(4, 3, 1, 0), None, CONTEXT)
    np.testing.assert_array_equal(to_dense(LINK.receive(parcel, None, CONTEXT)[0]).values, [4, 0, 0, 0])
    np.testing.assert_array_equal(state.values, [0, 3, 1, 0])
    # (1, 2, 0, 0) + (0, 3, 1, 0) = (1, 5, 1, 0): 5 is sent, (1, 0, 1, 0) waits
    parcel, state = LINK.send(tensors(1, 2, 0, 0), state, CONTEXT)
    np.testing.assert_array_equal(to_dense(LINK.receive(parcel, None, CONTEXT)[0]).values, [0, 5, 0, 0])
    np.testing.assert_array_equal(state.values, [1, 0, 1, 0])


def test_a_residual_may_fade() -> None:
    fading = ErrorFeedback(TopK(0.25), decay=0.5)
    _, state = fading.send(tensors(4, 3, 1, 0), None, CONTEXT)
    # (0, 0, 0, 2) + 0.5 (0, 3, 1, 0) = (0, 1.5, 0.5, 2)
    parcel, state = fading.send(tensors(0, 0, 0, 2), state, CONTEXT)
    np.testing.assert_array_equal(to_dense(parcel.decode(SCHEMA)).values, [0, 0, 0, 2])
    np.testing.assert_array_equal(state.values, [0, 1.5, 0.5, 0])


def test_a_residual_may_fade_with_every_round_that_it_waits() -> None:
    fading = ErrorFeedback(TopK(0.25), decay=0.5, decay_per_round=0.5)
    _, state = fading.send(tensors(4, 8, 16, 0), None, CONTEXT)
    assert isinstance(state, Dated)
    # two rounds later: (0, 0, 0, 2) + 0.5 * 0.5^2 * (4, 8, 0, 0) = (0.5, 1, 0, 2)
    parcel, state = fading.send(tensors(0, 0, 0, 2), state, replace(CONTEXT, round_number=3))
    np.testing.assert_array_equal(to_dense(parcel.decode(SCHEMA)).values, [0, 0, 0, 2])
    assert isinstance(state, Dated)
    np.testing.assert_array_equal(state.residual.values, [0.5, 1, 0, 0])
    assert state.round_number == 3


def test_a_residual_that_fades_with_the_rounds_fades_also_where_nothing_is_sent() -> None:
    schema = Schema((TensorSpec("a", (2,), "float64"), TensorSpec("b", (2,), "float64")))
    fading, context = ErrorFeedback(TopK(0.5), decay_per_round=0.5), replace(CONTEXT, schema=schema)
    _, state = fading.send(Tensors(schema, np.array([4.0, 2, 8, 6])), None, context)
    # b alone, one round later: 0.5 (0, 6) + (1, 1) = (1, 4), of which 4 goes; a's 2 waits and is 1 by then
    only = pick(Tensors(schema, np.array([0.0, 0, 1, 1])), ("b",))
    _, state = fading.send(only, state, replace(context, round_number=2))
    assert isinstance(state, Dated)
    np.testing.assert_array_equal(state.residual.values, [0, 1, 1, 0])


def test_sent_plus_residual_is_all_there_was() -> None:
    rng, sent, wanted, state = np.random.default_rng(3), np.zeros(4), np.zeros(4), None
    for _ in range(50):
        update = rng.normal(size=4)
        parcel, state = LINK.send(tensors(*update), state, CONTEXT)
        sent, wanted = sent + to_dense(parcel.decode(SCHEMA)).values, wanted + update
        np.testing.assert_allclose(sent + state.values, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("faults", [RandomFaults(), RandomFaults(lost=0.2, late=0.2)], ids=["reliable", "unreliable"])
def test_the_same_through_the_engine_at_partial_participation(faults: RandomFaults) -> None:
    """Per client: all payloads the server absorbed plus the residual = all updates behind them, at any time."""
    federation = QuadraticFederation.draw(6, NOISY)
    session = federation.play(build("fedavg", {"name": "error_feedback", "codec": "top_k"}), 0, Setting(faults=faults))
    sent, wanted = np.zeros((6, 12)), np.zeros((6, 12))
    for number in range(1, 13):
        before = session.model
        session.advance(1)
        absorbed = [e.client for e in session.ledger.events if e.round_number == number and e.outcome == "fresh"]
        for client in absorbed:
            trained = federation.trainer(client, number).train(before).model
            wanted[client] += trained.weights.values - before.weights.values
            crossing = [c for c in session.crossings if c.client == client and c.direction == "up"][-1]
            sent[client] += to_dense(crossing.envelope.parcels["update"].decode(session.schema.weights)).values
        for client, contact in session.record.contacts.items():
            residual = session.store.load(client).memories[contact.ack].uplink["update"].values
            np.testing.assert_allclose(sent[client] + residual, wanted[client], rtol=1e-11, atol=1e-12)


def test_the_residual_is_bounded_by_what_was_wanted() -> None:
    # |e|^2 <= (1 - k / d) |delta + e|^2 for one tensor
    schema, state = Schema((TensorSpec("a", (30,), "float64"),)), None
    context, rng, link = (
        LinkContext(schema, 1, 0, np.random.default_rng(0)),
        np.random.default_rng(5),
        ErrorFeedback(TopK(0.2)),
    )
    for _ in range(20):
        update = Tensors(schema, rng.standard_t(2, 30))
        wanted = update.values + (0 if state is None else state.values)
        parcel, state = link.send(update, state, context)
        bound = (1 - kept_count(30, 0.2) / 30) * float(wanted @ wanted)
        assert float(state.values @ state.values) <= bound * (1 + 1e-12)
        assert len(parcel.decode(schema).values) == 6


@pytest.mark.slow
def test_feedback_follows_gradient_descent_where_plain_top_k_does_not() -> None:
    # everybody, one step: EF stays near the path of dense FedAvg and ends near its end
    federation = QuadraticFederation.draw(4, has_buffers=False)
    federation = type(federation)(**{**vars(federation), "steps": np.ones(4, np.int64)})
    setting = Setting(cohort=4)
    codec = {"name": "top_k", "ratio": 0.2}
    dense, feedback, plain = (
        federation.play(build("fedavg", link), 60, setting)
        for link in (None, {"name": "error_feedback", "codec": codec}, codec)
    )
    away = [
        max(float(np.abs(one.weights.values - other.weights.values).max()) for one, other in pairs)
        for pairs in (
            list(zip(feedback.models, dense.models, strict=True))[40:],
            list(zip(plain.models, dense.models, strict=True))[40:],
        )
    ]
    assert away[0] < 0.5 * away[1]


def test_a_part_of_the_schema_is_its_own_story() -> None:
    schema = Schema((TensorSpec("a", (2,), "float64"), TensorSpec("b", (2,), "float64")))
    context = LinkContext(schema, 1, 0, np.random.default_rng(0))
    part = pick(Tensors(schema, np.array([1.0, 2.0, 3.0, 4.0])), ("b",))
    parcel, state = ErrorFeedback(TopK(0.5)).send(part, None, context)
    np.testing.assert_array_equal(state.values, [0, 0, 3, 0])  # a has nothing that waits
    assert [block.mode.name for block in parcel.blocks] == ["absent", "bitmap"]


def test_the_residual_of_an_absent_tensor_waits() -> None:
    schema = Schema((TensorSpec("a", (2,), "float64"), TensorSpec("b", (2,), "float64")))
    context, link = LinkContext(schema, 1, 0, np.random.default_rng(0)), ErrorFeedback(TopK(0.5))
    update = Tensors(schema, np.array([1.0, 2.0, 3.0, 4.0]))
    _, state = link.send(update, None, context)
    np.testing.assert_array_equal(state.values, [1, 0, 3, 0])
    # only b: (3, 4) + (3, 0) = (6, 4), of which 6 is sent; the 1 of a waits
    parcel, state = link.send(pick(update, ("b",)), state, context)
    np.testing.assert_array_equal(to_dense(parcel.decode(schema)).values, [6, 0])
    np.testing.assert_array_equal(state.values, [1, 0, 0, 4])


def test_mistakes() -> None:
    assert ErrorFeedback.has_memory
    with pytest.raises(ConfigError, match=r"error_feedback\.decay must be in \(0, 1\], got 0"):
        ErrorFeedback(decay=0)
    with pytest.raises(ConfigError, match=r"error_feedback\.codec"):
        ErrorFeedback(Eden())  # its error can be larger than the tensor
    with pytest.raises(WireError, match="always sends a parcel"):
        LINK.receive(None, None, CONTEXT)
