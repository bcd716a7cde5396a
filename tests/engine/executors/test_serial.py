"""The serial executor: in client order, through objects or bytes, with the fates of the plan."""

from __future__ import annotations

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.message import Message
from fedreuse.core.model import to_groups
from fedreuse.engine.executors.executor import executors
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import Listed, ListedFault
from fedreuse.engine.ports import ServerPort
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ServerRecord
from fedreuse.testing.conformance import check_executor
from fedreuse.testing.quadratic import QuadraticFederation
from tests.federation import build

FEDERATION = QuadraticFederation.draw(4)
METHOD = build("fed_ef")  # its clients remember what the codec dropped


def exchange(mode: str, *faults: ListedFault):
    store = MemoryStore()
    site = FEDERATION.site(METHOD, store=store, faults=Listed(faults))
    requests = ServerPort(METHOD, ServerRecord(None), 1, FEDERATION.schema, 7).pack(
        dict.fromkeys((3, 0, 2), Message("train", to_groups(FEDERATION.initial, "model")))
    )
    executor = Serial(mode).start(site)
    return executor, requests, store


def test_replies_come_in_client_order_with_their_work() -> None:
    executor, requests, store = exchange("fast")
    replies = list(executor.exchange(requests))
    assert [reply.client for reply in replies] == [0, 2, 3]
    assert [reply.work.training_steps for reply in replies] == FEDERATION.steps[[0, 2, 3]].tolist()
    assert sorted(client for client, _ in store.items()) == [0, 2, 3]


def test_a_lost_client_is_never_asked_and_a_late_one_is() -> None:
    executor, requests, store = exchange("strict", ListedFault(1, 0, "lost"), ListedFault(1, 3, "late"))
    assert [(reply.client, reply.status) for reply in executor.exchange(requests)] == [(2, "in_time"), (3, "late")]
    assert sorted(client for client, _ in store.items()) == [2, 3]


def test_waves_are_counted_within_a_round() -> None:
    executor, requests, _ = exchange("fast", ListedFault(1, 0, "lost", exchange=2))
    answered = [any(reply.client == 0 for reply in executor.exchange(requests)) for _ in range(3)]
    assert answered == [True, False, True]
    executor.end_round({})
    assert any(reply.client == 0 for reply in executor.exchange(requests))  # a new round counts from 1 again


@pytest.mark.parametrize(("mode", "is_through_bytes"), [("fast", False), ("strict", True)])
def test_strict_makes_every_envelope_anew(mode: str, is_through_bytes: bool) -> None:
    executor, requests, _ = exchange(mode)
    reply = next(iter(executor.exchange(requests)))
    # an array that was read off a message is a view of its bytes
    bases = {type(block.fields[0].base) for block in reply.envelope.parcels["update"].blocks}
    assert (bases == {memoryview}) is is_through_bytes


def test_the_round_settles_memories() -> None:
    executor, requests, store = exchange("fast")
    list(executor.exchange(requests))
    executor.end_round({0: 1, 2: 0, 3: 1})
    assert {client: list(record.memories) for client, record in store.items()} == {0: [1], 2: [], 3: [1]}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast", "strict"])
def test_it_conforms(mode: str) -> None:
    check_executor(Serial(mode))


def test_modes_are_two() -> None:
    with pytest.raises(ConfigError, match=r"executor\.mode: input should be 'fast' or 'strict', got 'slow'"):
        executors.parse({"name": "serial", "mode": "slow"}, "executor")
