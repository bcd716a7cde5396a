"""Replies that were tampered with, at the server's own border: absorbed whole, or refused without a trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import WireError
from fedreuse.core.message import Message
from fedreuse.core.model import to_groups
from fedreuse.core.tensors import is_finite
from fedreuse.engine.ports import ServerPort, client_answer
from fedreuse.engine.state.records import ClientRecord, ServerRecord
from fedreuse.methods.averaging import update_of
from fedreuse.testing.quadratic import QuadraticFederation
from tests.federation import build, top_k
from tests.fuzz.harness import frame, mutate, seed_of

FEDERATION = QuadraticFederation.draw(3)
MODEL = to_groups(FEDERATION.initial, "model")
LINKS = [
    None,
    top_k(0.3),
    {"name": "qsgd", "bits": 3, "bucket": 4},
    {"name": "ecuq", "bits": 2.0},
    {"name": "ternary", "ratio": 0.3},
    {"name": "error_feedback", "codec": top_k(0.3)},
    {"name": "ef21", "codec": top_k(0.3)},
    {"name": "clag", "codec": top_k(0.3)},
    {"name": "lbgm", "threshold": 0.9},
    {"name": "laq", "bits": 3},
    {"name": "three_pc"},
]


def conversation(link: object) -> tuple[ServerPort, Envelope]:
    """A server in round 2 that waits for the answer of client 0, and that answer."""
    method = build("fedavg", link)
    record, memory = ServerRecord(None), ClientRecord()
    for number in (1, 2):
        server = ServerPort(method, record, number, FEDERATION.schema, FEDERATION.seed)
        # held groups, so that clients without state have a record, too
        message = Message("train", MODEL, keep=True, answers=(update_of(FEDERATION.initial),))
        request = server.pack({0: message})[0]
        reply, memory = client_answer(method, request, memory, FEDERATION.trainer(0, number), 0)
        if number == 1:
            server.unpack({0: reply})
            record = server.finish(None)
    return server, reply


@pytest.mark.slow
@pytest.mark.parametrize("link", LINKS, ids=lambda link: link["name"] if link else "dense")
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_a_changed_reply_is_absorbed_whole_or_leaves_no_trace(link: object, seed: int) -> None:
    server, reply = conversation(link)
    before = server.finish(None).contacts[0]
    rng = np.random.default_rng(seed)

    def flip(part: bytes) -> bytes:
        changed = bytearray(part)
        for at in rng.integers(len(part), size=int(rng.integers(1, 4))):
            changed[at] = rng.integers(256)
        return bytes(changed)

    data = seed_of(reply)
    for _ in range(int(rng.integers(1, 4))):
        data = mutate(data, rng, flip)
    addresses = (reply.round_number, reply.exchange, reply.ack, reply.durable)
    try:
        changed = Envelope.from_bytes(frame(data, addresses), FEDERATION.schema)
    except WireError:
        return
    messages, refused = server.unpack({0: changed})
    after = server.finish(None).contacts.get(0)
    assert (0 in messages) != (0 in refused)
    if 0 in messages:
        assert (messages[0].kind, set(messages[0].groups)) == ("update", {"update", "buffers", "counters"})
        assert all(is_finite(tensors) for tensors in messages[0].groups.values())
        assert after.ack == reply.exchange
    elif server.forgotten:
        assert after is None
    else:
        assert after is before


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link["name"] if link else "dense")
def test_the_reply_itself_is_absorbed_once(link: object) -> None:
    server, reply = conversation(link)
    assert list(server.unpack({0: reply})[0]) == [0]
    assert list(server.unpack({0: reply})[1]) == [0]
