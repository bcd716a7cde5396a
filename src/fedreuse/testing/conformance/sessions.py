"""Common parts of the suites: sessions on a federation of quadratics, and the equality of two sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedreuse.accounting.ledger import LedgerRow
from fedreuse.core.int_map import IntMap
from fedreuse.core.model import Model
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import RandomFaults
from fedreuse.engine.state.checkpoint import Checkpointer
from fedreuse.engine.state.state_file import write_state
from fedreuse.testing.cases import Case
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting, quadratic_schema

__all__ = [
    "ROUNDS",
    "STRICT",
    "UNRELIABLE",
    "assert_equal",
    "assert_same_memories",
    "assert_same_models",
    "check_events",
    "drawn",
    "is_same",
    "play",
    "six_clients",
    "stored",
]

ROUNDS = 7
STRICT = Setting(executor=Serial("strict"))
UNRELIABLE = RandomFaults(lost=0.2, late=0.25)
_TRAINING = QuadraticTraining(lr=0.05, momentum=0.8, weight_decay=0.01, noise=0.5)


def six_clients() -> QuadraticFederation:
    """Return a federation of six different clients, with momentum, weight decay and noise."""
    return QuadraticFederation.draw(6, _TRAINING)


def play(case: Case, setting: Setting | None = None, num_rounds: int = ROUNDS) -> Session:
    """Return a session of a case after some rounds."""
    return six_clients().play(case.build(), num_rounds, setting)


def is_same(left: Model, right: Model) -> bool:
    """Return True if two models are bit-identical."""
    pairs = ((left.weights, right.weights), (left.buffers, right.buffers), (left.counters, right.counters))
    return all(is_equal(first, second) for first, second in pairs)


def assert_same_models(left: Session, right: Session) -> None:
    """Check that models are bit-identical after every round."""
    assert len(left.models) == len(right.models)
    for number, (first, second) in enumerate(zip(left.models, right.models, strict=True)):
        assert is_same(first, second), f"the models differ after round {number}"


def assert_same_memories(left: Session, right: Session) -> None:
    """Check that both ends are equal, where replies of the left were not absorbed and those of the right never came."""
    schema = left.schema
    assert write_state(left.record, schema) == write_state(right.record, schema), "the server remembers a lost reply"
    for client, contact in left.record.contacts.items():
        first, second = (session.store.load(client).committed(contact.ack) for session in (left, right))
        assert write_state(first, schema) == write_state(second, schema), f"client {client} builds on a lost reply"


def assert_equal(left: Session, right: Session) -> None:
    """Check that models and memories are bit-identical and ledgers equal, except for seconds."""
    assert_same_models(left, right)
    assert _facts(left.ledger.rows) == _facts(right.ledger.rows), "the ledgers differ"
    assert left.ledger.events == right.ledger.events, "the events differ"
    assert _server_memory(left) == _server_memory(right), "the servers' records differ"
    acks = {client: contact.ack for client, contact in left.record.contacts.items()}
    assert acks == {client: contact.ack for client, contact in right.record.contacts.items()}
    for client, ack in acks.items():
        first, second = (session.store.load(client).committed(ack) for session in (left, right))
        assert write_state(first, left.schema) == write_state(second, left.schema), (
            f"the records of client {client} differ"
        )
    check_events(left)


def _server_memory(session: Session) -> dict[tuple[str, int], bytes | None]:
    """Return the server's record, except for the time of the last checkpoint."""
    contacts = IntMap({client: replace(contact, durable=0) for client, contact in session.record.contacts.items()})
    record = replace(session.record, contacts=contacts, durable_exchange=0)
    return Checkpointer(session.schema).changes(record, None)


def check_events(session: Session) -> None:
    """Check that there is one event per selected client and round; of asynchronous methods, one per arrival."""
    if session.method.server.is_asynchronous:
        _check_arrivals(session)
        return
    for number in range(1, session.round_number + 1):
        clients = [event.client for event in session.ledger.events if event.round_number == number]
        selected = list(session.federation.cohort(number, session.setting.cohort).clients)
        assert sorted(clients) == selected, f"round {number}: events of {clients}, but {selected} were selected"


def _check_arrivals(session: Session) -> None:
    """Check that fresh events are the absorbed replies, round by round in order of arrival, with the age of each."""
    asked = {row.exchange: row.round_number for row in session.ledger.rows if row.direction == "down"}
    replies = [row for row in session.ledger.rows if row.direction == "up" and row.status == "in_time"]
    arrived = [(row.round_number, row.client, row.round_number - asked[row.exchange]) for row in replies]
    fresh = [event for event in session.ledger.events if event.outcome == "fresh"]
    assert [(event.round_number, event.client, event.age) for event in fresh] == arrived


def _facts(rows: Sequence[LedgerRow]) -> list[LedgerRow]:
    return [replace(row, work=replace(row.work, seconds=0.0)) for row in rows]


def drawn(number: int) -> Tensors:
    """Return random weights, different for each number."""
    schema = quadratic_schema().weights
    return Tensors(schema, np.random.default_rng([3, number]).normal(size=schema.size))


def stored(state: Any) -> bytes:
    """Return a state as a checkpoint stores it."""
    return write_state(state, quadratic_schema())
