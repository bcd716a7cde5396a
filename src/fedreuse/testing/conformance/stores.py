"""Conformance checks of client stores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedreuse.core.schema import ModelSchema
from fedreuse.core.tensors import Tensors, pick, zeros
from fedreuse.engine.state.client_store import ClientStore
from fedreuse.engine.state.records import ClientMemory, ClientRecord, Kept
from fedreuse.testing.cases import Case
from fedreuse.testing.conformance.sessions import UNRELIABLE, assert_equal, drawn, play, stored
from fedreuse.testing.quadratic import Setting, quadratic_schema

__all__ = ["STORE_CHECKS", "MakeStore", "check_store"]

MakeStore = Callable[[], ClientStore]


def check_store(make_store: MakeStore) -> None:
    """Run all checks of a client store; each call of `make_store` returns an empty one for `quadratic_schema()`."""
    for check in STORE_CHECKS.values():
        check(make_store)


def _an_unknown_client_is_empty(make_store: MakeStore) -> None:
    store = make_store()
    assert not store.load(3).memories
    assert not list(store.items())


def _saved_records_are_loaded(make_store: MakeStore) -> None:
    store = make_store()
    records = {client: _remembered(client) for client in (0, 7, 123456)}
    for client, record in records.items():
        store.save(client, record)
    store.save(7, records[0])
    expected = {0: records[0], 7: records[0], 123456: records[123456]}
    for client, record in expected.items():
        assert stored(store.load(client)) == stored(record), "another record is loaded"
    assert {client: stored(record) for client, record in store.items()} == {
        client: stored(record) for client, record in expected.items()
    }


def _acknowledged_memories_survive_a_commit(make_store: MakeStore) -> None:
    store = make_store()
    store.save(1, _remembered(1))
    store.save(2, _remembered(2))
    store.commit({1: 5, 99: 4})
    assert stored(store.load(1).committed(5)) == stored(_remembered(1).committed(5))
    assert stored(store.load(2)) == stored(_remembered(2)), "a client outside the round changed"
    assert not store.load(99).memories, "a client that never answered has a record"


def _a_session_is_the_same_in_any_store(make_store: MakeStore) -> None:
    case = Case("fedavg", uplink={"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}})
    for faults in (Setting().faults, UNRELIABLE):
        assert_equal(play(case, Setting(faults=faults)), play(case, Setting(faults=faults, make_store=make_store)))


STORE_CHECKS: dict[str, Callable[[MakeStore], None]] = {
    "an unknown client is empty": _an_unknown_client_is_empty,
    "saved records are loaded": _saved_records_are_loaded,
    "acknowledged memories survive a commit": _acknowledged_memories_survive_a_commit,
    "a session is the same in any store": _a_session_is_the_same_in_any_store,
}


def _remembered(client: int) -> ClientRecord:
    schema: ModelSchema = quadratic_schema()
    dense = drawn(client)
    sparse = Tensors(schema.weights, np.array([1.0, -0.0]), np.array([2, 9], np.int32))
    kept = Kept(4, {"model": dense, "counters": zeros(schema.counters)})
    first = ClientMemory(None, {"update": sparse}, {}, kept)
    second = ClientMemory((client, 0.1, "word", True, None), {"update": dense}, {"model": pick(dense, ("fc.bias",))})
    return ClientRecord({4: first, 5: second})
