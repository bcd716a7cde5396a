"""Checkpoints: what changed and nothing else, and the same record again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core import mapped
from fedreuse.core.errors import RunDirectoryError, RunError
from fedreuse.core.int_map import IntMap
from fedreuse.core.mapped import is_mapped
from fedreuse.core.tensors import Tensors
from fedreuse.core.values import value
from fedreuse.engine.state import checkpoint as checkpoint_module
from fedreuse.engine.state.checkpoint import Checkpointer, restore_clients, restore_server
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ClientRecord, Contact, ServerRecord
from fedreuse.engine.state.tensor_store import TensorStore
from fedreuse.testing.quadratic import QuadraticFederation, quadratic_schema
from tests.federation import NOISY, build, is_same, top_k

SCHEMA = quadratic_schema()


@value
class Nested:
    """A state with a mapping of clients inside another value."""

    inner: Any
    cache: Mapping[int, Any]
    words: Mapping[str, int]


def record(cache: Mapping[int, Any], **changes: Any) -> ServerRecord:
    state = Nested(Nested(None, {9: "deep"}, {}), cache, {"a": 1})
    return ServerRecord(state, {4: Contact(ack=2)}, **{"exchange": 3, **changes})


def written(blobs: Mapping[tuple[str, int], bytes | None]) -> dict[tuple[str, int], bytes]:
    return {place: data for place, data in blobs.items() if data is not None}


def test_the_whole_record_comes_back() -> None:
    before = record({1: Tensors(SCHEMA.weights, np.arange(12.0)), 2: "two"})
    after = restore_server(written(Checkpointer(SCHEMA).changes(before, MemoryStore())), SCHEMA, "here")
    assert after.state.inner.cache == {9: "deep"}
    assert after.state.words == {"a": 1}
    assert sorted(after.state.cache) == [1, 2]
    assert after.state.cache[1].values.tolist() == list(range(12))
    assert (after.contacts[4].ack, after.exchange, after.durable_exchange) == (2, 3, 3)


def test_only_what_changed_is_written() -> None:
    one, two = (Tensors(SCHEMA.weights, np.full(12, float(number))) for number in (1, 2))
    keeper = Checkpointer(SCHEMA)
    first = record({1: one, 2: two})
    keeper.changes(first, MemoryStore())
    assert set(keeper.changes(first, MemoryStore())) == {("server", 0)}
    second = replace(first, state=replace(first.state, cache={1: one, 2: one, 3: two}))
    assert set(keeper.changes(second, MemoryStore())) == {
        ("server", 0),
        ("server.state.cache", 2),
        ("server.state.cache", 3),
    }


def test_what_is_gone_is_taken_away() -> None:
    keeper = Checkpointer(SCHEMA)
    keeper.changes(record({1: "a", 2: "b"}), MemoryStore())
    assert keeper.changes(record({2: "b"}), MemoryStore())["server.state.cache", 1] is None
    # a mapping that is empty now must not keep its last entry
    assert keeper.changes(record({}), MemoryStore())["server.state.cache", 2] is None
    assert keeper.changes(replace(record({}), contacts={}), MemoryStore())["server.contacts", 4] is None


def test_a_resumed_keeper_knows_what_is_stored() -> None:
    first = record({1: "a"})
    keeper = Checkpointer(SCHEMA, first)
    assert set(keeper.changes(first, MemoryStore())) == {("server", 0)}


def test_clients_of_a_memory_store_are_stored_with_the_server() -> None:
    store = MemoryStore()
    store.save(3, ClientRecord())
    blobs = Checkpointer(SCHEMA).changes(record({}), store)
    assert list(restore_clients(written(blobs), SCHEMA, "here")) == [3]


def test_the_cost_follows_the_cohort_and_not_the_population() -> None:
    session = QuadraticFederation.draw(8, NOISY).play(build("dg_fedreuse", top_k(0.3), gate="always"), 12)
    keeper = Checkpointer(SCHEMA, session.record)
    session.advance(1)
    places = [place for place in keeper.changes(session.record, session.store) if place[0] != "server"]
    assert {place for place, _ in places} == {"server.state.cache", "server.state.rounds", "server.contacts"}
    assert len(places) == 9  # three clients took part; the session's own checkpoint took their records


def test_many_rounds_of_small_changes_add_up_to_the_state() -> None:
    session = QuadraticFederation.draw(5, NOISY).play(build("dg_fedreuse", top_k(0.3)), 9)
    again = restore_server(session.blobs, SCHEMA, "here")
    assert is_same(again.state.model, session.record.state.model)
    assert sorted(again.contacts) == sorted(session.record.contacts)


def test_a_damaged_blob_is_refused() -> None:
    blobs = written(Checkpointer(SCHEMA).changes(record({1: "a"}), MemoryStore()))
    blobs["server.state.cache", 1] = b"garbage"
    with pytest.raises(RunDirectoryError, match="here is not a readable checkpoint"):
        restore_server(blobs, SCHEMA, "here")


def test_a_large_state_lies_in_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "_LARGE_BYTES", 90)
    store = TensorStore(tmp_path, SCHEMA, min_bytes=10**6)
    state = Nested(Tensors(SCHEMA.weights, np.arange(12.0)), {}, {"a": 1})
    keeper, before = Checkpointer(SCHEMA, None, store), ServerRecord(state, IntMap({4: Contact(ack=2)}), exchange=3)
    blobs = written(keeper.changes(before, MemoryStore()))
    assert len(blobs["server", 0]) < 1000
    settled = keeper.settled(before)
    assert is_mapped(settled.state.inner.values)
    assert settled.contacts is before.contacts
    # the next one replaces it, also after a resume
    resumed = restore_server(blobs, SCHEMA, "here", store)
    assert (resumed.exchange, resumed.contacts[4].ack, resumed.state.words) == (3, 2, {"a": 1})
    later = Checkpointer(SCHEMA, resumed, store)
    after = replace(resumed, exchange=5)
    blobs |= written(later.changes(after, MemoryStore()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["main-3.safetensors", "main-5.safetensors"]
    later.settled(after)
    assert [path.name for path in tmp_path.iterdir()] == ["main-5.safetensors"]
    assert restore_server(blobs, SCHEMA, "here", store).state.inner.values.tolist() == list(range(12))


def test_a_state_that_no_journal_takes_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_module, "_MAX_BLOB_BYTES", 100)
    with pytest.raises(RunError, match=r"too large for the journal.*set server_store: disk"):
        Checkpointer(SCHEMA).changes(record({}), MemoryStore())
