"""The rehearsal: first, joining and further visits are told apart, and memory is that of the clients it met."""

from __future__ import annotations

from dataclasses import field

import numpy as np
import pytest

from fedreuse.accounting.dense import dense_reference
from fedreuse.core.int_map import IntMap
from fedreuse.core.values import value
from fedreuse.runs.federation import assemble
from fedreuse.runs.rehearsal import maps_by_client, rehearse
from tests.tiny import tiny

DELTA = {"name": "delta", "codec": {"name": "top_k", "ratio": 0.1}}


@pytest.mark.slow
def test_dense_messages_cost_the_same_in_every_round() -> None:
    federation = assemble(tiny())
    found, dense = rehearse(federation), dense_reference(federation.schema)
    for crossed in (found.first, found.joining, found.further):
        assert (crossed.down, crossed.up) == (dense.request_bytes, dense.reply_bytes)
    assert found.server_bytes == federation.schema.dense_bytes
    assert (found.link_bytes_per_client, found.client_bytes) == (0, 0)
    assert found.seconds_per_step > 0


@pytest.mark.slow
@pytest.mark.parametrize("start", ["dense", "initial"])
def test_first_contacts_are_told_apart(start: str) -> None:
    federation = assemble(tiny(downlink={"model": {**DELTA, "start": start}}))
    found, dense = rehearse(federation), dense_reference(federation.schema)
    assert found.further.down < 0.6 * dense.request_bytes
    if start == "dense":
        assert found.first.down == found.joining.down == dense.request_bytes
    else:
        assert found.first.down < found.joining.down < 0.6 * dense.request_bytes
    weights = federation.schema.weights.dense_bytes
    assert (found.link_bytes_per_client, found.client_bytes) == (weights, weights)


@pytest.mark.slow
def test_what_a_missed_round_costs_is_told_apart() -> None:
    link = {"name": "broadcast", "codec": {"name": "top_k", "ratio": 0.02}}
    federation = assemble(tiny(downlink={"model": link}))
    found = rehearse(federation)
    # the first broadcast has a description as the empty one of round 1 has; each further one brings its own
    assert found.further.down - found.first.down <= found.missed < found.further.down
    assert found.joining.down == pytest.approx(found.further.down + 4 * found.missed)
    assert found.link_bytes_per_client == 0
    weights = federation.schema.weights.dense_bytes
    assert 2 * weights < found.server_bytes < 3.1 * weights  # the model, the estimate, five broadcasts
    assert found.client_bytes == weights


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mifa", "dg_fedreuse", "scaffold", "docofl"])
def test_every_kind_of_conversation_can_be_rehearsed(method: str) -> None:
    found = rehearse(assemble(tiny(method=method)))
    assert found.further.up > 0
    assert found.server_bytes > 0


def test_what_a_state_holds_by_client() -> None:
    @value
    class Holding:
        model: np.ndarray
        by_client: IntMap[np.ndarray]
        by_round: IntMap[np.ndarray] = field(metadata={"by": "round"})

    state = Holding(np.zeros(5), IntMap({1: np.zeros(3), 4: np.zeros(2)}), IntMap({1: np.zeros(7)}))
    assert [len(entries) for entries in maps_by_client(state)] == [2]
