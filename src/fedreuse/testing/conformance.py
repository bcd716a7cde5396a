"""What every method, link, client store and executor must hold; a check raises AssertionError where it does not.

METHOD_CHECKS, LINK_CHECKS, STORE_CHECKS and EXECUTOR_CHECKS list the single checks by name, so that a test can run
them one by one; `check_method` and its sisters run them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fedreuse.accounting.ledger import LedgerRow
from fedreuse.codecs.dense import Dense
from fedreuse.core.bench import Bench
from fedreuse.core.int_map import IntMap
from fedreuse.core.method import Link, LinkContext, methods
from fedreuse.core.model import Model
from fedreuse.core.needs import Needs
from fedreuse.engine.checkpoint import Checkpointer
from fedreuse.engine.client_store import ClientStore, DiskStore
from fedreuse.engine.executors.executor import ExecutorConfig, ExecutorWrapper, Reply, RunExecutor, Site
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import Fate, Listed, ListedFault, RandomFaults
from fedreuse.engine.records import ClientMemory, ClientRecord, Kept
from fedreuse.engine.state_file import read_state, write_state
from fedreuse.engine.tensor_store import TensorStore
from fedreuse.errors import ConfigError, RunError, WireError
from fedreuse.schema import ModelSchema
from fedreuse.tensors import Tensors, is_equal, pick, to_dense, zeros
from fedreuse.testing.cases import Case, Said, read_messages
from fedreuse.testing.guards import NothingElse, guarded, mirrored, named, unchanged
from fedreuse.testing.quadratic import (
    QuadraticBench,
    QuadraticFederation,
    QuadraticTraining,
    Session,
    Setting,
    quadratic_schema,
)
from fedreuse.wire.block import ABSENT, absent_block
from fedreuse.wire.envelope import Envelope
from fedreuse.wire.parcel import Parcel

__all__ = [
    "EXECUTOR_CHECKS",
    "LINK_CHECKS",
    "METHOD_CHECKS",
    "STORE_CHECKS",
    "check_card",
    "check_executor",
    "check_link",
    "check_method",
    "check_store",
    "check_table",
]

_ROUNDS = 7
_TRAINING = QuadraticTraining(lr=0.05, momentum=0.8, weight_decay=0.01, noise=0.5)
_STRICT = Setting(executor=Serial("strict"))
_UNRELIABLE = RandomFaults(lost=0.2, late=0.25)
_GROUPS = ("model", "update", "buffers", "counters")


# -- methods


def check_method(case: Case, cards: Path | None = None) -> None:
    """Everything a method must hold; `cards` is the folder of method cards, if they are to be compared too."""
    for check in METHOD_CHECKS.values():
        check(case)
    if cards is not None:
        check_card(case, cards)


def check_table(cases: list[Case], cards: Path) -> None:
    """Every registered method has a case, and every case a card."""
    without = set(methods.names()) - {case.method for case in cases}
    assert not without, f"methods without a case in the table: {sorted(without)}"
    missing = sorted({case.method for case in cases if not (cards / case.card).exists()})
    assert not missing, f"methods without a card in {cards}: {missing}"


def check_card(case: Case, cards: Path) -> None:
    """The card's Messages table allows all that crosses."""
    said = _said(_play(case))
    undeclared = said - read_messages(cards / case.card)
    assert not undeclared, f"{cards / case.card} does not list {sorted(undeclared)}"


def _strict_equals_fast(case: Case) -> None:
    _assert_equal(_play(case), _play(case, _STRICT))


def _the_order_of_replies_does_not_matter(case: Case) -> None:
    _assert_equal(_play(case), _play(case, Setting(executor=_Backwards())))


def _resume_equals_uninterrupted(case: Case) -> None:
    whole = _play(case, num_rounds=0)
    stopped = [whole.advance(1).resumed() for _ in range(_ROUNDS)]
    for session in stopped:
        _assert_equal(whole, session.advance(_ROUNDS - session.round_number))


def _resume_from_an_older_checkpoint(case: Case) -> None:
    """Clients keep their own files and are ahead of the server that comes back: a round is repeated."""
    with TemporaryDirectory() as folder:
        places = (Path(folder) / str(number) for number in range(100))

        def on_disk() -> DiskStore:
            return DiskStore(next(places), quadratic_schema())

        whole = _play(case)
        for every, stop in ((3, 5), (4, 3)):
            stopped = _play(case, Setting(make_store=on_disk, checkpoint_every=every), stop)
            again = stopped.resumed(stopped.store)
            _assert_equal(whole, again.advance(_ROUNDS - again.round_number))


def _the_server_on_disk_equals_memory(case: Case) -> None:
    """What the server holds of clients lies in files between rounds; the bits, and resuming, are the same."""
    whole = _play(case)
    for stop in (3, _ROUNDS):
        with TemporaryDirectory() as folder:
            tensors = TensorStore(Path(folder), quadratic_schema(), min_bytes=1)
            stopped = _play(case, Setting(tensors=tensors), stop)
            again = stopped.resumed()
            _assert_equal(whole, again.advance(_ROUNDS - again.round_number))


def _a_late_reply_is_a_lost_reply(case: Case) -> None:
    """Whatever a client did for a reply that was not absorbed leaves no trace at either end."""
    late, lost = _play(case, Setting(faults=_UNRELIABLE)), _play(case, Setting(faults=_Lost()))
    _assert_same_models(late, lost)
    _assert_same_memories(late, lost)
    statuses = {row.status for row in late.ledger.rows}
    assert statuses == {"in_time", "late"}, f"the fault plan makes replies late, the ledger says {statuses}"


def _both_ends_stay_equal(case: Case) -> None:
    """Receivers decode what senders say, and every acknowledged memory is still there, whatever got lost."""
    for faults in (Setting().faults, _UNRELIABLE, RandomFaults(lost=0.4)):
        session = Session(_federation(), mirrored(case.build(), _GROUPS), Setting(faults=faults))
        for _ in range(_ROUNDS):
            session.advance(1)
            for client, contact in session.record.contacts.items():
                kept = session.store.load(client).memories
                assert contact.ack in kept, f"client {client} forgot exchange {contact.ack}, which the server absorbed"


def _a_silent_round_stands_still(case: Case) -> None:
    nobody = Listed(tuple(ListedFault(3, client, "lost", wave) for client in range(6) for wave in (1, 2)))
    session = _play(case, Setting(faults=nobody))
    before, after = session.models[2:4]
    if not any(event.outcome == "reused" for event in session.ledger.events if event.round_number == 3):
        assert _is_same(before, after), "nobody answered in round 3, and the model moved"
    assert not _is_same(session.models[0], session.models[-1]), "the model never moves"
    _check_events(session)


def _inputs_are_never_changed(case: Case) -> None:
    session = Session(_federation(), guarded(case.build()), Setting(faults=_UNRELIABLE))
    _assert_same_models(session.advance(_ROUNDS), _play(case, Setting(faults=_UNRELIABLE)))


def _predicted_sizes_are_real(case: Case) -> None:
    session = _play(case)
    for crossing in session.crossings:
        data = crossing.envelope.to_bytes()
        assert len(data) == crossing.envelope.size(), f"{crossing.envelope.kind}: predicted size is not the real one"
        again = Envelope.from_bytes(data, session.schema)
        assert again.to_bytes() == data, f"{crossing.envelope.kind}: bytes come back as other bytes"
    total = sum(crossing.envelope.size() for crossing in session.crossings)
    assert total == sum(row.total_bytes for row in session.ledger.rows), "the ledger misses what crossed"


def _only_declared_messages_cross(case: Case) -> None:
    undeclared = _said(_play(case, Setting(faults=_UNRELIABLE))) - case.declared
    assert not undeclared, f"the case does not declare {sorted(undeclared)}"


def _needs_are_enforced(case: Case) -> None:
    needs = case.config.needs
    if needs.full_participation:
        try:
            needs.check(case.method, 3, 6, False)
        except ConfigError:
            pass
        else:
            raise AssertionError("full participation is needed, but 3 of 6 clients are accepted")
        needs.check(case.method, 3, 6, True)
    needs.check(case.method, 6, 6, False)
    federation = _Bounded(**vars(_federation()), needs=needs)
    Session(federation, case.build(), Setting()).advance(_ROUNDS)


def _states_are_values(case: Case) -> None:
    """Every state becomes bytes without pickle, and comes back as it was."""
    session = Session(_federation(), case.build(), Setting(faults=_UNRELIABLE))
    for _ in range(_ROUNDS):
        session.advance(1)
        for state in (session.record, *(record for _, record in session.store.items())):
            data = write_state(state, session.schema)
            again = read_state(data, session.schema, "a state")
            assert write_state(again, session.schema) == data, "a state comes back as another"


def _numbers_that_are_none_are_refused(case: Case) -> None:
    """One client's training diverges: its reply is refused, the others are absorbed; if all diverge, the run ends."""
    federation = _federation()
    sick = federation.cohort(1, 3).clients[1]
    one = Session(replace(federation, poisoned=frozenset({(1, sick)})), case.build(), Setting()).advance(1)
    outcomes = {event.client: event.outcome for event in one.ledger.events}
    assert outcomes[sick] == "lost", f"a reply that is not finite was absorbed as {outcomes[sick]}"
    replies = [row for row in one.ledger.rows if row.direction == "up" and row.purpose == "training"]
    assert [row.status for row in replies if row.client == sick] == ["refused"]
    assert sorted(outcomes.values()) == ["fresh", "fresh", "lost"], "the other clients were not absorbed"
    assert np.isfinite(one.model.weights.values).all()
    one.advance(_ROUNDS - 1)
    everybody = frozenset((number, client) for number in range(1, _ROUNDS) for client in range(6))
    try:
        Session(replace(federation, poisoned=everybody), case.build(), Setting()).advance(1)
    except RunError:
        return
    raise AssertionError("every reply was refused, and the run went on")


def _what_is_no_answer_is_a_lost_reply(case: Case) -> None:
    """A reply of another kind, or with a group or value too few or too many, is refused and leaves no trace."""
    executor = _Spoiling()
    spoiled = _federation().play(named(case.build()), _ROUNDS, Setting(executor=executor))
    refused = {(row.exchange, row.client) for row in spoiled.ledger.rows if row.status == "refused"}
    absorbed = {way for place, way in executor.ways.items() if place not in refused}
    assert not absorbed, f"the requests' answers allow these replies: {sorted(absorbed)}"
    lost = _play(case, Setting(faults=Listed(tuple(executor.faults))))
    _assert_same_models(spoiled, lost)
    assert spoiled.ledger.events == lost.ledger.events, "a reply that is no answer is told as something else than lost"
    _assert_same_memories(spoiled, lost)


METHOD_CHECKS: dict[str, Callable[[Case], None]] = {
    "strict equals fast": _strict_equals_fast,
    "the order of replies does not matter": _the_order_of_replies_does_not_matter,
    "resume equals uninterrupted": _resume_equals_uninterrupted,
    "resume from an older checkpoint": _resume_from_an_older_checkpoint,
    "the server on disk equals memory": _the_server_on_disk_equals_memory,
    "a late reply is a lost reply": _a_late_reply_is_a_lost_reply,
    "both ends stay equal": _both_ends_stay_equal,
    "a silent round stands still": _a_silent_round_stands_still,
    "inputs are never changed": _inputs_are_never_changed,
    "predicted sizes are real": _predicted_sizes_are_real,
    "only declared messages cross": _only_declared_messages_cross,
    "needs are enforced": _needs_are_enforced,
    "states are values": _states_are_values,
    "numbers that are none are refused": _numbers_that_are_none_are_refused,
    "what is no answer is a lost reply": _what_is_no_answer_is_a_lost_reply,
}


# -- links


def check_link(link: Link) -> None:
    """Everything a link must hold."""
    for check in LINK_CHECKS.values():
        check(link)


def _sender_and_receiver_agree(link: Link) -> None:
    sender = receiver = None
    for number in range(1, 6):
        context = _context(number)
        tensors = _drawn(number)
        with unchanged("send", tensors, sender):
            parcel, sender = link.send(tensors, sender, context)
        if number == 1:
            assert parcel is not None, "the first parcel is always sent"
        with unchanged("receive", receiver):
            received, receiver = link.receive(parcel, receiver, _context(number))
        assert is_equal(received, link.delivered(parcel, sender, _context(number))), "delivered is not what is received"
        assert received.schema == context.schema


def _a_link_is_a_function(link: Link) -> None:
    """The same input, state and stream give the same parcel and state."""
    state = None
    for number in range(1, 4):
        (one, after), (other, again) = (link.send(_drawn(number), state, _context(number)) for _ in range(2))
        assert _bytes(one) == _bytes(other)
        assert _stored(after) == _stored(again)
        state = after


def _link_states_are_values(link: Link) -> None:
    sender = receiver = None
    for number in range(1, 4):
        parcel, sender = link.send(_drawn(number), sender, _context(number))
        _, receiver = link.receive(parcel, receiver, _context(number))
        for state in (sender, receiver):
            again = read_state(_stored(state), quadratic_schema(), "a link's state")
            assert _stored(again) == _stored(state), "a link's state comes back as another"
        sender = read_state(_stored(sender), quadratic_schema(), "a link's state")


def _parcels_survive_the_wire(link: Link) -> None:
    schema = quadratic_schema()
    sender = one = other = None
    for number in range(1, 4):
        parcel, sender = link.send(_drawn(number), sender, _context(number))
        arrived = Envelope.from_bytes(_bytes(parcel), schema).parcels["update"]
        (left, one), (right, other) = (
            link.receive(parcel, one, _context(number)),
            link.receive(arrived, other, _context(number)),
        )
        assert is_equal(left, right), "a parcel that went through bytes decodes to other tensors"


def _absent_tensors_are_left_alone(link: Link) -> None:
    """A group may hold a part of the schema; the rest neither travels nor changes."""
    names = ("body.weight", "fc.bias")
    sender = receiver = None
    for number in range(1, 4):
        part = pick(_drawn(number), names)
        parcel, sender = link.send(part, sender, _context(number))
        received, receiver = link.receive(parcel, receiver, _context(number))
        assert tuple(spec.name for spec in received.schema) == names, "other tensors arrive than were sent"
        assert is_equal(received, link.delivered(parcel, sender, _context(number)))


def _zeros_arrive_as_zeros(link: Link) -> None:
    parcel, _ = link.send(zeros(quadratic_schema().weights), None, _context(1))
    received, _ = link.receive(parcel, None, _context(1))
    assert not to_dense(received).values.any()


def _silence_before_the_first_parcel_is_refused(link: Link) -> None:
    try:
        link.receive(None, None, _context(1))
    except WireError:
        return
    raise AssertionError("a receiver must not invent what was never sent")


LINK_CHECKS: dict[str, Callable[[Link], None]] = {
    "sender and receiver agree": _sender_and_receiver_agree,
    "a link is a function": _a_link_is_a_function,
    "states are values": _link_states_are_values,
    "parcels survive the wire": _parcels_survive_the_wire,
    "absent tensors are left alone": _absent_tensors_are_left_alone,
    "zeros arrive as zeros": _zeros_arrive_as_zeros,
    "silence before the first parcel is refused": _silence_before_the_first_parcel_is_refused,
}


# -- client stores

MakeStore = Callable[[], ClientStore]


def check_store(make_store: MakeStore) -> None:
    """Everything a client store must hold; each call of `make_store` gives an empty one for `quadratic_schema()`."""
    for check in STORE_CHECKS.values():
        check(make_store)


def _a_stranger_is_empty(make_store: MakeStore) -> None:
    store = make_store()
    assert not store.load(3).memories
    assert not list(store.items())


def _what_is_saved_is_loaded(make_store: MakeStore) -> None:
    store = make_store()
    records = {client: _remembered(client) for client in (0, 7, 123456)}
    for client, record in records.items():
        store.save(client, record)
    store.save(7, records[0])
    expected = {0: records[0], 7: records[0], 123456: records[123456]}
    for client, record in expected.items():
        assert _stored(store.load(client)) == _stored(record), "another record comes back"
    assert {client: _stored(record) for client, record in store.items()} == {
        client: _stored(record) for client, record in expected.items()
    }


def _acknowledged_memories_survive_a_commit(make_store: MakeStore) -> None:
    store = make_store()
    store.save(1, _remembered(1))
    store.save(2, _remembered(2))
    store.commit({1: 5, 99: 4})
    assert _stored(store.load(1).committed(5)) == _stored(_remembered(1).committed(5))
    assert _stored(store.load(2)) == _stored(_remembered(2)), "a client outside the round changed"
    assert not store.load(99).memories, "a client that never answered is remembered"


def _a_session_is_the_same_in_any_store(make_store: MakeStore) -> None:
    case = Case("fedavg", uplink={"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}})
    for faults in (Setting().faults, _UNRELIABLE):
        _assert_equal(_play(case, Setting(faults=faults)), _play(case, Setting(faults=faults, make_store=make_store)))


STORE_CHECKS: dict[str, Callable[[MakeStore], None]] = {
    "a stranger is empty": _a_stranger_is_empty,
    "what is saved is loaded": _what_is_saved_is_loaded,
    "acknowledged memories survive a commit": _acknowledged_memories_survive_a_commit,
    "a session is the same in any store": _a_session_is_the_same_in_any_store,
}


# -- executors

_EXECUTED = (
    Case("fedavg", uplink={"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}),
    Case("dg_fedreuse", {"gate": {"name": "quantile", "batches": 1}}, uplink={"name": "top_k", "ratio": 0.3}),
)


def check_executor(executor: ExecutorConfig) -> None:
    """Everything an executor must hold: the same bits and the same rows as the strict serial one."""
    for check in EXECUTOR_CHECKS.values():
        check(executor)


def _equals_the_reference(executor: ExecutorConfig) -> None:
    for case in _EXECUTED:
        with closing(_play(case, Setting(executor=executor))) as session:
            _assert_equal(_play(case, _STRICT), session)


def _equals_the_reference_under_faults(executor: ExecutorConfig) -> None:
    for case in _EXECUTED:
        with closing(_play(case, Setting(executor=executor, faults=_UNRELIABLE))) as session:
            _assert_equal(_play(case, replace(_STRICT, faults=_UNRELIABLE)), session)


def _equals_the_reference_after_a_resume(executor: ExecutorConfig) -> None:
    for case in _EXECUTED:
        with closing(_play(case, Setting(executor=executor, faults=_UNRELIABLE), 4)) as stopped:
            again = stopped.resumed()
        with closing(again):
            _assert_equal(_play(case, replace(_STRICT, faults=_UNRELIABLE)), again.advance(_ROUNDS - 4))


def _requests_are_left_alone(executor: ExecutorConfig) -> None:
    guarded_method = guarded(_EXECUTED[1].build())
    with closing(Session(_federation(), guarded_method, Setting(executor=executor))) as session:
        _assert_same_models(session.advance(_ROUNDS), _play(_EXECUTED[1]))


EXECUTOR_CHECKS: dict[str, Callable[[ExecutorConfig], None]] = {
    "equals the reference": _equals_the_reference,
    "equals the reference under faults": _equals_the_reference_under_faults,
    "equals the reference after a resume": _equals_the_reference_after_a_resume,
    "requests are left alone": _requests_are_left_alone,
}


# -- what the checks share


def _federation() -> QuadraticFederation:
    return QuadraticFederation.draw(6, _TRAINING)


def _play(case: Case, setting: Setting | None = None, num_rounds: int = _ROUNDS) -> Session:
    return _federation().play(case.build(), num_rounds, setting)


def _said(session: Session) -> frozenset[Said]:
    said: set[Said] = set()
    for crossing in session.crossings:
        kind = crossing.envelope.kind
        groups = ("", *crossing.envelope.parcels)
        said |= {(kind, crossing.direction, group) for group in groups}
    return frozenset(said)


def _is_same(left: Model, right: Model) -> bool:
    pairs = ((left.weights, right.weights), (left.buffers, right.buffers), (left.counters, right.counters))
    return all(is_equal(one, other) for one, other in pairs)


def _assert_same_models(left: Session, right: Session) -> None:
    assert len(left.models) == len(right.models)
    for number, (one, other) in enumerate(zip(left.models, right.models, strict=True)):
        assert _is_same(one, other), f"the models differ after round {number}"


def _assert_same_memories(left: Session, right: Session) -> None:
    """Both ends hold the same, where replies of the left were not absorbed and those of the right never came."""
    schema = left.schema
    assert write_state(left.record, schema) == write_state(right.record, schema), "the server remembers a lost reply"
    for client, contact in left.record.contacts.items():
        one, other = (session.store.load(client).committed(contact.ack) for session in (left, right))
        assert write_state(one, schema) == write_state(other, schema), f"client {client} builds on a lost reply"


def _assert_equal(left: Session, right: Session) -> None:
    """Bitwise equal models, equal ledgers but for seconds, equal memories."""
    _assert_same_models(left, right)
    assert _facts(left.ledger.rows) == _facts(right.ledger.rows), "the ledgers differ"
    assert left.ledger.events == right.ledger.events, "the events differ"
    assert _remembers(left) == _remembers(right), "the servers remember other things"
    acks = {client: contact.ack for client, contact in left.record.contacts.items()}
    assert acks == {client: contact.ack for client, contact in right.record.contacts.items()}
    for client, ack in acks.items():
        one, other = (session.store.load(client).committed(ack) for session in (left, right))
        assert write_state(one, left.schema) == write_state(other, left.schema), (
            f"client {client} remembers other things"
        )
    _check_events(left)


def _remembers(session: Session) -> dict[tuple[str, int], bytes | None]:
    """The server's whole memory, but for when it was last stored."""
    contacts = IntMap({client: replace(contact, durable=0) for client, contact in session.record.contacts.items()})
    record = replace(session.record, contacts=contacts, durable_exchange=0)
    return Checkpointer(session.schema).changes(record, None)


def _check_events(session: Session) -> None:
    for number in range(1, session.round_number + 1):
        told = [event.client for event in session.ledger.events if event.round_number == number]
        selected = list(session.federation.cohort(number, session.setting.cohort).clients)
        assert sorted(told) == selected, f"round {number}: one event per selected client, got {told} for {selected}"


def _facts(rows: list[LedgerRow]) -> list[LedgerRow]:
    return [replace(row, work=replace(row.work, seconds=0.0)) for row in rows]


def _context(number: int) -> LinkContext:
    return LinkContext(quadratic_schema().weights, number, 2, np.random.default_rng(number))


def _drawn(number: int) -> Tensors:
    schema = quadratic_schema().weights
    return Tensors(schema, np.random.default_rng([3, number]).normal(size=schema.size))


def _bytes(parcel: Parcel | None) -> bytes:
    return Envelope("update", 1, 1, parcels={"update": parcel}).to_bytes()


def _stored(state: Any) -> bytes:
    return write_state(state, quadratic_schema())


def _remembered(client: int) -> ClientRecord:
    schema: ModelSchema = quadratic_schema()
    dense = _drawn(client)
    sparse = Tensors(schema.weights, np.array([1.0, -0.0]), np.array([2, 9], np.int32))
    kept = Kept(4, {"model": dense, "counters": zeros(schema.counters)})
    first = ClientMemory(None, {"update": sparse}, {}, kept)
    second = ClientMemory((client, 0.1, "word", True, None), {"update": dense}, {"model": pick(dense, ("fc.bias",))})
    return ClientRecord({4: first, 5: second})


@dataclass(frozen=True)
class _Lost:
    """The unreliable plan, with every late reply lost instead."""

    def fate(self, seed: int, round_number: int, exchange_in_round: int, client: int) -> Fate:
        fate = _UNRELIABLE.fate(seed, round_number, exchange_in_round, client)
        return "lost" if fate == "late" else fate


def _without(named: Mapping[str, Any], number: int) -> dict[str, Any]:
    gone = list(named)[number]
    return {name: entry for name, entry in named.items() if name != gone}


def _spoiled(reply: Envelope) -> dict[str, Envelope]:
    """Well-formed messages that are no answer where `reply` is one, by what is wrong with them."""
    more = Dense().encode(_drawn(1), quadratic_schema().weights, np.random.default_rng(0))
    parcels, values = reply.parcels, reply.values
    ways = {"of another kind": replace(reply, kind=f"no {reply.kind}")}
    ways |= {f"without {group}": replace(reply, parcels=_without(parcels, at)) for at, group in enumerate(parcels)}
    ways |= {f"without {name}": replace(reply, values=_without(values, at)) for at, name in enumerate(values)}
    ways |= {f"with a word for {name}": replace(reply, values={**values, name: "word"}) for name in values}
    ways["with one group more"] = replace(reply, parcels={**parcels, "more": more})
    ways["with one value more"] = replace(reply, values={**values, "more": 1.0})
    for group, parcel in parcels.items():
        if parcel is not None:
            at = next(at for at, block in enumerate(parcel.blocks) if block.mode is not ABSENT)
            short = replace(parcel, blocks=(*parcel.blocks[:at], absent_block(), *parcel.blocks[at + 1 :]))
            ways[f"without a tensor of {group}"] = replace(reply, parcels={**parcels, group: short})
    return ways


@dataclass(frozen=True)
class _Spoiling:
    """A serial executor that spoils all replies of a wave but one, in every way there is."""

    ways: dict[tuple[int, int], str] = field(default_factory=dict)
    """By exchange and client, what was tried."""
    faults: list[ListedFault] = field(default_factory=list)

    def start(self, site: Site) -> RunExecutor:
        return _SpoilingExecutor(Serial().start(site), self)

    def spoil(self, reply: Reply, wave: int) -> Reply:
        """Another reply; the first of the ways that were tried least."""
        envelope, tried = reply.envelope, Counter(self.ways.values())
        ways = {f"{envelope.kind} {way}": spoiled for way, spoiled in _spoiled(envelope).items()}
        way = min(ways, key=lambda way: tried[way])
        self.ways[envelope.exchange, reply.client] = way
        self.faults.append(ListedFault(envelope.round_number, reply.client, "lost", wave))
        return replace(reply, envelope=ways[way])


class _SpoilingExecutor(ExecutorWrapper):
    def __init__(self, inner: RunExecutor, how: _Spoiling) -> None:
        super().__init__(inner)
        self._how, self._wave = how, 0

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        self._wave += 1
        replies = list(self._inner.exchange(requests))
        honest = replies[replies[0].envelope.exchange % len(replies)] if len(replies) > 1 or self._wave == 1 else None
        return (reply if reply is honest else self._how.spoil(reply, self._wave) for reply in replies)

    def end_round(self, acks: Mapping[int, int]) -> None:
        self._wave = 0
        super().end_round(acks)


@dataclass(frozen=True)
class _Backwards:
    """A serial executor whose replies come in the opposite order."""

    def start(self, site: Site) -> RunExecutor:
        return _BackwardsExecutor(Serial().start(site))


class _BackwardsExecutor(ExecutorWrapper):
    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        return reversed(list(self._inner.exchange(requests)))


@dataclass(frozen=True, eq=False)
class _Bounded(QuadraticFederation):
    """Clients that can be asked for nothing but what the method says it needs."""

    needs: Needs = field(default_factory=Needs)

    def bench(self, client: int, round_number: int) -> Bench:  # type: ignore[override]  # the same, but for refusals
        return NothingElse(QuadraticBench(self, client, round_number), self.needs)
