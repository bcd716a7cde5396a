"""Broadcasts: by hand, catching up in the shorter form, lost replies, memory that does not grow, and identities."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.accounting.memory import memory_of
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.broadcast import Broadcast, Shared
from fedreuse.compression.links.delta import Delta
from fedreuse.core.errors import ConfigError, NotHeld, WireError
from fedreuse.core.method import LinkContext
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.engine.faults import RandomFaults
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ClientRecord
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.broadcast import broadcast_fedavg
from tests.references.local import top_k as plain_top_k
from tests.tiny import tiny

SIZE = 400
SCHEMA = Schema((TensorSpec("a", (SIZE,)),))
INITIAL = Tensors(SCHEMA, np.zeros(SIZE, np.float32))
CONTEXT = LinkContext(SCHEMA, 1, 0, np.random.default_rng(0), initial=INITIAL)
ONE = TopK(1 / SIZE)


def at(**values: float) -> Tensors:
    """Zeros but for some coordinates, `_3=2.0` for the fourth."""
    flat = np.zeros(SIZE, np.float32)
    for name, number in values.items():
        flat[int(name[1:])] = number
    return Tensors(SCHEMA, flat)


def shared_by(link: Broadcast, *models: Tensors, context: LinkContext = CONTEXT) -> Shared | None:
    """What the server shares after it sent these, one a round."""
    shared = None
    for model in models:
        shared = link.share(model, shared, context)
    return shared


def heard(link: Broadcast, shared: Shared | None, since: int | None, mine: Tensors | None, **changes: Any) -> Any:
    """A receiver's parcel, what the server then remembers of it, and what it then holds."""
    context = replace(CONTEXT, shared=shared, **changes)
    parcel, after = link.send(at(), since, context)
    arrived, held = link.receive(parcel, mine, replace(context, shared=None))
    assert arrived is held
    assert is_equal(held, link.delivered(parcel, after, context))
    return parcel, after, held


def test_broadcasts_by_hand() -> None:
    # the model is (5, 3, 0, ...) in both rounds; one coordinate fits, so that the second broadcast brings the 3
    link, model = Broadcast(ONE), at(_0=5, _1=3)
    nothing, one, both = (
        shared_by(link, *rounds) for rounds in ((INITIAL,), (INITIAL, model), (INITIAL, model, model))
    )
    parcel, number, held = heard(link, nothing, None, None)
    assert (number, parcel.field_bytes, parcel.more) == (0, 0, ())
    assert parcel.notes == {"held": crc32(bytes(4 * SIZE))}
    parcel, number, held = heard(link, one, number, held)
    assert (number, parcel.body_bytes, held.values[:3].tolist()) == (1, 8, [5, 0, 0])  # a position and a value
    parcel, number, held = heard(link, both, number, held)
    assert (number, parcel.body_bytes, held.values[:3].tolist()) == (2, 8, [5, 3, 0])
    assert parcel.notes == {"held": crc32(np.array([5] + [0] * (SIZE - 1), "<f4").tobytes())}


def test_whoever_was_away_receives_what_it_missed() -> None:
    link, model = Broadcast(ONE), at(_0=5, _1=3, _2=2)
    shared = shared_by(link, INITIAL, model, model, model)
    for since in (None, 0):  # somebody new is as far as somebody who was there in round 1
        parcel, number, held = heard(link, shared, since, None if since is None else INITIAL)
        assert (number, parcel.body_bytes, len(parcel.more)) == (3, 24, 2)
        assert held.values[:4].tolist() == [5, 3, 2, 0]
    _, _, held = heard(link, shared_by(link, INITIAL, model), 0, INITIAL)
    parcel, number, held = heard(link, shared, 1, held)
    assert (number, parcel.body_bytes, held.values[:4].tolist()) == (3, 16, [5, 3, 2, 0])


def test_nothing_new_costs_nothing() -> None:
    link, model = Broadcast(ONE), at(_0=5)
    shared = shared_by(link, INITIAL, model, model)
    assert shared is not None
    assert shared.number == 1
    _, number, held = heard(link, shared, 0, INITIAL)
    parcel, number, _ = heard(link, shared, number, held)
    assert (number, parcel.body_bytes, parcel.more) == (1, 0, ())


def test_who_is_older_than_the_history_is_sent_the_estimate() -> None:
    link, model = Broadcast(ONE, last=2), at(_0=5, _1=3, _2=2)
    shared = shared_by(link, INITIAL, model, model, model)
    assert shared is not None
    assert len(shared.past) == 2
    for since, mine in ((None, None), (0, INITIAL)):
        parcel, number, held = heard(link, shared, since, mine)
        assert (number, parcel.body_bytes, parcel.notes, parcel.more) == (3, 4 * SIZE, {}, ())
        assert held.values[:4].tolist() == [5, 3, 2, 0]
    assert heard(link, shared, 1, at(_0=5))[0].body_bytes == 16


def test_the_shorter_form_is_sent() -> None:
    # a broadcast of 60 coordinates is 60 values and a bitmap, 290 bytes, and a description of about 20: five fit into
    # the 1,600 of the estimate, so five are kept, and who missed six is sent the estimate
    link, rng = Broadcast(TopK(60 / SIZE)), np.random.default_rng(1)
    models = [Tensors(SCHEMA, rng.normal(size=SIZE).astype(np.float32)) for _ in range(9)]
    shared = shared_by(link, INITIAL, *models)
    assert shared is not None
    assert (shared.number, len(shared.past)) == (9, 5)
    known = INITIAL
    for since in range(9):
        before = shared_by(link, INITIAL, *models[:since])
        known = known if before is None else before.estimate
        parcel, number, held = heard(link, shared, since, known)
        assert number == 9
        assert is_equal(held, shared.estimate)
        assert parcel.body_bytes == (290 * (9 - since) if since >= 4 else 4 * SIZE)
    assert sum(map(len, shared.past)) <= 4 * SIZE + 5 * 40


def test_without_a_common_start_the_first_model_travels() -> None:
    link, context = Broadcast(ONE), replace(CONTEXT, initial=None)
    shared = shared_by(link, at(_0=5), at(_0=5, _1=2), context=context)
    parcel, number, held = heard(link, shared, None, None, initial=None)
    assert (number, parcel.body_bytes, held.values[:2].tolist()) == (2, 4 * SIZE, [5, 2])
    parcel, number, held = heard(link, shared, 1, at(_0=5), initial=None)
    assert (number, parcel.body_bytes, held.values[:2].tolist()) == (2, 8, [5, 2])


@pytest.mark.parametrize("mine", [None, at(_7=1)])
def test_a_receiver_that_holds_something_else_says_so_and_is_sent_everything(mine: Tensors | None) -> None:
    link = Broadcast(ONE)
    shared = shared_by(link, INITIAL, at(_0=5), at(_0=5, _1=2))
    parcel, _ = link.send(at(), 1, replace(CONTEXT, shared=shared))
    with pytest.raises(NotHeld, match="tensors that are not held here"):
        link.receive(parcel, mine, CONTEXT)
    # the server then forgets how far the receiver was, and does not count on the initial model
    assert heard(link, shared, None, mine, initial=None)[2].values[:2].tolist() == [5, 2]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sets(st.integers(0, 5)), st.sets(st.integers(0, 5))), max_size=12), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_both_ends_hold_the_same_whatever_got_lost(rounds: list[tuple[set[int], set[int]]], last: int) -> None:
    """In each round some are asked, and the replies of some are lost: then neither end moves on."""
    link, shared, rng = Broadcast(TopK(0.05), last), None, np.random.default_rng(3)
    known: dict[int, int] = {}
    held: dict[int, Tensors] = {}
    for asked, lost in rounds:
        shared = link.share(Tensors(SCHEMA, rng.normal(size=SIZE).astype(np.float32)), shared, CONTEXT)
        for client in sorted(asked):
            _, number, mine = heard(link, shared, known.get(client), held.get(client))
            assert is_equal(mine, shared.estimate)
            if client not in lost:
                known[client], held[client] = number, mine


def test_one_receiver_is_the_delta_link() -> None:
    delta, link, rng = Delta(TopK(0.1), start="initial"), Broadcast(TopK(0.1), last=1), np.random.default_rng(5)
    state, shared, number, held = None, None, None, None
    for _ in range(5):
        model = Tensors(SCHEMA, rng.normal(size=SIZE).astype(np.float32))
        wanted, state = delta.send(model, state, CONTEXT)
        shared = link.share(model, shared, CONTEXT)
        parcel, number, held = heard(link, shared, number, held)
        assert is_equal(held, state)
        assert (parcel.body_bytes, parcel.notes) == (wanted.body_bytes, wanted.notes)


@pytest.mark.slow
@pytest.mark.parametrize("last", [1, 5])
@pytest.mark.parametrize("codec", [top_k(0.3), "nonzero"])
def test_with_everybody_in_every_round_it_is_the_delta_link(codec: object, last: int) -> None:
    federation, setting = QuadraticFederation.draw(4, NOISY), Setting(cohort=4)
    links = ({"name": "delta", "codec": codec, "start": "initial"}, {"name": "broadcast", "codec": codec, "last": last})
    delta, broadcast = (federation.play(build("fedavg", downlink=link), 6, setting) for link in links)
    assert all(is_same(*pair) for pair in zip(delta.models, broadcast.models, strict=True))
    assert [row.total_bytes for row in delta.ledger.rows] == [row.total_bytes for row in broadcast.ledger.rows]


def test_equals_the_reference() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    session = federation.play(build("fedavg", downlink={"name": "broadcast", "codec": top_k(0.3)}), 6)
    wanted = broadcast_fedavg(plain_problem(federation, 6, 3), lambda vector: plain_top_k(vector, 0.3))
    for model, one in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *one)


def check_ends(session: Session) -> None:
    """Who is as far as the server holds its estimate, and nobody holds anything that the server would not know."""
    shared = session.record.shared["model"]
    for client, contact in session.record.contacts.items():
        mine = session.store.load(client).memories[contact.ack].downlink["model"]
        assert type(contact.downlink["model"]) is int
        assert is_equal(mine, shared.estimate) == (contact.downlink["model"] == shared.number)


@pytest.mark.parametrize("shares_initial", [True, False])
def test_lost_and_late_replies_cost_no_resync(shares_initial: bool) -> None:
    setting = Setting(faults=RandomFaults(lost=0.3, late=0.2), shares_initial=shares_initial)
    method = build("fedavg", downlink={"name": "broadcast", "codec": top_k(0.3)})
    session = QuadraticFederation.draw(5, NOISY).play(method, 12, setting)
    assert "resyncs" not in session.ledger.counts
    check_ends(session)


def test_a_session_goes_on_from_what_was_stored() -> None:
    method = build("fedavg", downlink={"name": "broadcast", "codec": top_k(0.3)})
    whole = QuadraticFederation.draw(5, NOISY).play(method, 8, Setting(checkpoint_every=3))
    again = QuadraticFederation.draw(5, NOISY).play(method, 4, Setting(checkpoint_every=3)).resumed().advance(5)
    assert is_same(again.model, whole.model)
    check_ends(again)


def test_a_client_that_lost_its_memory_and_one_with_another_are_mended() -> None:
    method = build("fedavg", downlink={"name": "broadcast", "codec": top_k(0.3)})
    session = QuadraticFederation.draw(3, NOISY).play(method, 3)
    client, ack = 1, session.record.contacts[1].ack
    memory = session.store.load(client).memories[ack]
    spoiled = replace(memory, downlink={"model": session.federation.initial.weights})
    session.store.save(client, ClientRecord({ack: spoiled}))
    session.advance(1)
    assert session.ledger.counts["resyncs"] == 1
    check_ends(session)
    session.store.save(client, ClientRecord())
    session.advance(2)
    assert session.ledger.counts["resyncs"] == 1
    check_ends(session)


@pytest.mark.slow
def test_the_servers_memory_does_not_grow_with_clients() -> None:
    def held(link: str, clients: int) -> int:
        method = build("fedavg", downlink={"name": link, "codec": top_k(0.3)})
        session = QuadraticFederation.draw(clients, NOISY).play(method, 2, Setting(cohort=clients))
        assert len(session.record.contacts) == clients
        return memory_of(session.record, MemoryStore())["server.all"]

    assert held("broadcast", 10) == held("broadcast", 1000)
    assert held("delta", 40) > 3 * held("delta", 10)


def test_codecs_and_places_that_it_cannot_have() -> None:
    with pytest.raises(ConfigError, match=r"broadcast\.codec must be contractive"):
        Broadcast(RandK(0.5))
    for last in (0, 1025):
        with pytest.raises(ConfigError, match=rf"broadcast\.last must be from 1 to 1024, got {last}"):
            Broadcast(Dense(), last)
    with pytest.raises(ConfigError, match=r"uplink\.update: broadcast sends the same to many"):
        tiny(uplink={"update": "broadcast"})
    with pytest.raises(WireError, match="always sends a parcel"):
        Broadcast().receive(None, None, CONTEXT)


@pytest.mark.slow
@pytest.mark.long
def test_every_executor_ends_in_the_same_bits(tmp_path: Path) -> None:
    link = {"name": "broadcast", "codec": top_k(0.1)}
    runs = [
        run(tiny(downlink={"model": link}, executor=executor), tmp_path / str(number))
        for number, executor in enumerate(({"name": "serial", "mode": "strict"}, {"name": "pool", "workers": 2}))
    ]
    assert runs[0].summary["model_digest"] == runs[1].summary["model_digest"]
    assert runs[0].summary["communication"] == runs[1].summary["communication"]
    assert all("resyncs" not in one.summary["counts"] for one in runs)
    assert "server.shared model" in runs[0].summary["memory_bytes"]
    assert "server.downlink model" not in runs[0].summary["memory_bytes"]
