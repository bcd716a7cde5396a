"""The averaging template: whoever answers is averaged, in client order, and nobody's silence stops it."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.message import Message
from fedreuse.core.model import to_groups
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.engine.faults import Listed, ListedFault
from fedreuse.methods.averaging import AveragingServer, average, updates_of
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import build, is_same

FEDERATION = QuadraticFederation.draw(4)


def reply(number: float) -> Message:
    """An update whose coordinates are all the same."""
    model = FEDERATION.initial
    groups = {
        name: Tensors(tensors.schema, np.full_like(tensors.values, number))
        for name, tensors in to_groups(model, "update").items()
    }
    return Message("update", groups)


def test_weights_are_those_of_the_replies_that_came() -> None:
    # clients 0, 1, 2 selected, 1 lost: (n_0 * 1 + n_2 * 4) / (n_0 + n_2)
    server, cohort = AveragingServer(), FEDERATION.cohort(1, 4)
    conversation = server.round(server.init(FEDERATION.initial, FEDERATION.population), cohort)
    asked = next(conversation)
    assert list(asked) == [0, 1, 2, 3]
    with pytest.raises(StopIteration) as finished:
        conversation.send({0: reply(1.0), 2: reply(4.0)})
    state, events = finished.value.value
    n = FEDERATION.examples
    move = (n[0] * 1.0 + n[2] * 4.0) / (n[0] + n[2])
    np.testing.assert_allclose(state.model.weights.values, FEDERATION.initial.weights.values + move, rtol=1e-13)
    assert state.model.counters.values.tolist() == [round(move)]
    assert [(event.client, event.outcome) for event in events.clients] == [
        (0, "fresh"),
        (1, "lost"),
        (2, "fresh"),
        (3, "lost"),
    ]


def test_if_nobody_answers_the_model_stands_still() -> None:
    everybody = tuple(ListedFault(2, client, "lost") for client in range(4))
    session = FEDERATION.play(build("fedavg"), 3, Setting(faults=Listed(everybody)))
    assert is_same(session.models[1], session.models[2])
    assert not is_same(session.models[2], session.models[3])
    assert {event.outcome for event in session.ledger.events if event.round_number == 2} == {"lost"}


def test_everybody_gets_the_same_request() -> None:
    server = AveragingServer()
    requests = next(server.round(server.init(FEDERATION.initial, FEDERATION.population), FEDERATION.cohort(1, 3)))
    assert len({id(request) for request in requests.values()}) == 1


def test_the_average_of_equal_updates_is_the_update() -> None:
    updates = updates_of({2: reply(3.0), 0: reply(3.0)}, FEDERATION.initial)
    assert list(updates) == [0, 2]
    mean = average(updates, FEDERATION.cohort(1, 4), "ratio", FEDERATION.initial)
    np.testing.assert_allclose(mean.weights.values, 3.0)
    assert mean.counters.values.tolist() == [3]


def test_unbiased_weights_concern_weights_alone() -> None:
    cohort, updates = FEDERATION.cohort(1, 2), updates_of({0: reply(1.0), 1: reply(2.0)}, FEDERATION.initial)
    ratio, unbiased = (average(updates, cohort, weighting, FEDERATION.initial) for weighting in ("ratio", "ht"))
    assert is_equal(ratio.buffers, unbiased.buffers)
    assert is_equal(ratio.counters, unbiased.counters)
    n = FEDERATION.examples
    # N / m = 4 / 2: 2 (n_0 * 1 + n_1 * 2) / n
    np.testing.assert_allclose(unbiased.weights.values, 2 * (n[0] + 2 * n[1]) / n.sum(), rtol=1e-13)
