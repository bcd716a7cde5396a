"""What SCALLION and SCAFCOM share: SCAFFOLD if nothing is lost, controls that stay their mean, odd numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedreuse.core.message import Message
from fedreuse.core.model import to_groups
from fedreuse.engine.faults import RandomFaults
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, build, top_k

LOSSLESS = [("scallion", {"alpha": 1.0}), ("scafcom", {"beta": 1.0})]
LOSSY: list[tuple[str, dict[str, Any]]] = [
    ("scallion", {"alpha": 0.3, "codec": {"name": "qsgd", "bits": 3, "bucket": 4}}),
    ("scafcom", {"beta": 0.3, "codec": top_k(0.3)}),
]


def assert_same(one: Session, other: Session) -> None:
    for mine, theirs in zip(one.models, other.models, strict=True):
        np.testing.assert_allclose(mine.weights.values, theirs.weights.values, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(mine.buffers.values, theirs.buffers.values, rtol=1e-10)


@pytest.mark.parametrize(("name", "options"), LOSSLESS)
@pytest.mark.parametrize("wire", ["literal", "derived"])
def test_lossless_and_whole_it_is_scaffold(name: str, options: dict[str, Any], wire: str) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    assert_same(
        federation.play(build(name, codec="dense", **options), 6), federation.play(build("scaffold", wire=wire), 6)
    )


def test_lossless_shares_of_increments_and_of_gradients_are_the_same() -> None:
    # c_i = v_i if nothing is lost: v_i - c_i = beta (g_i - c_i)
    federation = QuadraticFederation.draw(training=NOISY)
    one, other = (
        federation.play(method, 6)
        for method in (build("scallion", codec="dense", alpha=0.4), build("scafcom", codec="dense", beta=0.4))
    )
    assert_same(one, other)


def test_whole_increments_are_the_same_under_a_codec() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    one, other = (
        federation.play(method, 6)
        for method in (build("scallion", codec=top_k(0.4), alpha=1.0), build("scafcom", codec=top_k(0.4), beta=1.0))
    )
    assert_same(one, other)


@pytest.mark.parametrize(("name", "options"), LOSSY)
def test_the_servers_control_is_the_mean_of_the_clients(name: str, options: dict[str, Any]) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    setting = Setting(faults=RandomFaults(lost=0.3))
    session = Session(federation, build(name, **options), setting).advance(8)
    n = federation.examples
    mean = np.zeros(12)
    for client, contact in session.record.contacts.items():
        state = session.store.load(client).memories[contact.ack].state
        if state.control is not None:
            mean = mean + n[client] / n.sum() * state.control.values
    np.testing.assert_allclose(session.record.state.control.values, mean, rtol=1e-11, atol=1e-13)
    assert mean.any()


@pytest.mark.parametrize("said", [float("nan"), float("inf"), -1.0, 0.0, 1e-12, 1e9])
def test_a_pace_that_cannot_be_counts_as_no_step(said: float) -> None:
    federation = replace(QuadraticFederation.draw(2), steps=np.ones(2, np.int64))
    method = build("scallion", codec="dense", alpha=1.0)
    state = method.server.init(federation.initial, federation.population)
    conversation = method.server.round(state, federation.cohort(1, 2))
    requests = next(conversation)
    groups = to_groups(federation.initial, "update")
    replies = {client: Message("update", groups, {"per_step": said}) for client in requests}
    with pytest.raises(StopIteration) as finished:
        conversation.send(replies)
    after = finished.value.value[0]
    np.testing.assert_array_equal(after.model.weights.values, federation.initial.weights.values)
    assert not after.control.values.any()
