"""The server's end of the links to one node: questions, versions, and what is sent whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.compression.links.delta import Delta
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.config.recipe import Recipe
from fedreuse.core.errors import NotHeld, WireError
from fedreuse.core.method import Method
from fedreuse.core.model import Model
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.deploy.existing_app.app_call import ANSWER, AppClient
from fedreuse.deploy.existing_app.node_link import NodeLink, is_whole
from fedreuse.engine.ports import RESYNC

SCHEMA = ModelSchema(Schema((TensorSpec("w", (50,)),)))


def model(value: float) -> Model:
    values = Tensors(SCHEMA.weights, np.full(50, value, np.float32))
    return Model(values, zeros(SCHEMA.buffers), zeros(SCHEMA.counters))


def link(initial: float | None = 1.0) -> NodeLink:
    made: Method = replace(Recipe(downlink={"model": Delta(start="initial")}).build(), client=AppClient())
    made = replace(made, initial=None if initial is None else model(initial))
    return NodeLink(made, SCHEMA, 4, 101)


def answer(request: Envelope, kind: str = ANSWER) -> Envelope:
    return Envelope(kind, request.round_number, request.exchange, request.exchange)


def test_a_new_node_is_asked_for_the_initial_model_first() -> None:
    node = link()
    request = node.request(model(1), 1)
    assert not is_whole(request)
    assert request.body_bytes == 0
    with pytest.raises(NotHeld):
        node.reply(answer(request, RESYNC), 1)
    again = node.again(model(1))
    assert is_whole(again)
    node.reply(answer(again), 1)
    assert node.contact.ack == 2


def test_a_node_that_joins_later_is_sent_the_model_at_once() -> None:
    assert is_whole(link().request(model(3), 2))


def test_a_version_is_sent_once() -> None:
    node = link()
    node.reply(answer(node.request(model(1), 1)), 1)
    first = node.request(model(2), 2)
    assert first.body_bytes == 4 * 50  # every coordinate changed
    node.reply(answer(first), 2)
    assert node.request(model(2), 2).parcels == {}


def test_a_request_without_a_reply_is_sent_again() -> None:
    node = link()
    node.reply(answer(node.request(model(1), 1)), 1)
    assert node.request(model(2), 2).body_bytes == node.request(model(2), 2).body_bytes > 0


def test_a_reply_to_another_exchange_is_refused() -> None:
    node = link()
    request = node.request(model(1), 1)
    with pytest.raises(WireError, match="got no request"):
        node.reply(replace(answer(request), exchange=9), 1)
