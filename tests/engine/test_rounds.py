"""The round loop: it delivers, keeps the books, and stops when nothing can be absorbed."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from fedreuse.accounting.ledger import Ledger
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import RunError
from fedreuse.core.message import Message
from fedreuse.core.method import Method, methods
from fedreuse.core.population import Population
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from fedreuse.engine import rounds
from fedreuse.engine.executors.executor import ExecutorWrapper, Reply, RunExecutor, Site
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import Listed, ListedFault
from fedreuse.engine.rounds import dominant, mark_durable, run_round
from fedreuse.engine.state.records import ClientRecord, ServerRecord
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, build, is_same, top_k

NEVER = {"name": "proxy", "tau_start": 3.0, "tau_floor": 3.0, "max_age": 10**6, "quota": 0.0, "batches": 1}


def test_the_loop_knows_no_method() -> None:
    source = inspect.getsource(rounds)
    assert not [name for name in methods.names() if name in source]


def test_every_selected_client_has_an_event_and_every_envelope_a_row() -> None:
    session = QuadraticFederation.draw(6).play(build("fedavg"), 3)
    assert [event.client for event in session.ledger.events] == [
        client for number in (1, 2, 3) for client in session.federation.cohort(number, 3).clients
    ]
    assert len(session.ledger.rows) == len(session.crossings) == 18


def test_an_empty_cohort_is_a_quiet_round() -> None:
    federation = QuadraticFederation.draw(6)
    session = federation.play(build("fedavg"), 0)
    before = session.record

    class Nobody:
        def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
            raise AssertionError("nobody is asked")

        def end_round(self, acks: Mapping[int, int]) -> None:
            assert acks == {}

    cohort = replace(federation.cohort(1, 3), clients=())
    ledger = Ledger()
    after = run_round(session.method, before, cohort, Nobody(), ledger, session.schema)
    assert is_same(after.state.model, before.state.model)
    assert (ledger.rows, ledger.events) == ([], [])


def test_one_diverged_client_is_refused_and_the_others_go_on() -> None:
    federation = QuadraticFederation.draw(3)
    sick = replace(federation, poisoned=frozenset({(2, 1)}))
    lost = Setting(cohort=3, faults=Listed((ListedFault(2, 1, "lost"),)))
    left = sick.play(build("fedavg", top_k(0.3)), 4, Setting(cohort=3))
    right = federation.play(build("fedavg", top_k(0.3)), 4, lost)
    # a refused reply changes nothing: the run is that of a lost one
    assert all(is_same(*pair) for pair in zip(left.models, right.models, strict=True))
    row = next(row for row in left.ledger.rows if row.status == "refused")
    assert (row.round_number, row.client, row.direction) == (2, 1, "up")


def test_if_everybody_diverges_the_run_ends_with_the_reason() -> None:
    federation = replace(QuadraticFederation.draw(3), poisoned=frozenset((2, client) for client in range(3)))
    session = federation.play(build("fedavg"), 1, Setting(cohort=3))
    with pytest.raises(RunError, match=r"round 2: every update was refused \(client 0: group update holds infinite"):
        session.advance(1)


def test_scores_do_not_hide_that_all_training_diverged() -> None:
    gate = {"name": "proxy", "tau_start": 0.0, "tau_floor": 0.0, "max_age": 9, "batches": 1}
    federation = replace(QuadraticFederation.draw(3), poisoned=frozenset((2, client) for client in range(3)))
    session = federation.play(build("dg_fedreuse", gate=gate), 1, Setting(cohort=3))
    with pytest.raises(RunError, match="round 2: every update was refused"):
        session.advance(1)


def test_one_diverged_client_alone_in_a_wave_does_not_end_the_run() -> None:
    # round 2: client 2 has no cache and trains at once; the quota then takes one of the others, whose training diverges
    federation = QuadraticFederation.draw(3, NOISY)
    gate = {**NEVER, "quota": 0.6}
    faults = Listed((ListedFault(1, 2, "lost"),))
    healthy = federation.play(build("dg_fedreuse", gate=gate), 2, Setting(cohort=3, faults=faults))
    chosen = next(
        event.client for event in healthy.ledger.events if event.round_number == 2 and event.reason == "quota"
    )
    sick = replace(federation, poisoned=frozenset({(2, chosen)}))
    session = sick.play(build("dg_fedreuse", gate=gate), 2, Setting(cohort=3, faults=faults))
    outcomes = {event.client: event.outcome for event in session.ledger.events if event.round_number == 2}
    assert outcomes.pop(chosen) == "lost"
    assert sorted(outcomes.values()) == ["fresh", "reused"]


@dataclass(frozen=True)
class Misspoken:
    """A serial executor in which some clients' replies have a kind of their own, from round 2 on."""

    clients: Collection[int]
    kinds: Collection[str] = ("update", "score")

    def start(self, site: Site) -> Any:
        return _Misspoken(Serial().start(site), self)


class _Misspoken(ExecutorWrapper):
    def __init__(self, inner: RunExecutor, how: Misspoken) -> None:
        super().__init__(inner)
        self._how = how

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        for reply in self._inner.exchange(requests):
            said, how = reply.envelope, self._how
            speaks = reply.client in how.clients and said.kind in how.kinds and said.round_number > 1
            yield replace(reply, envelope=replace(said, kind="hello")) if speaks else reply


def test_a_client_that_says_something_else_is_lost_and_the_others_go_on() -> None:
    session = QuadraticFederation.draw(3).play(build("fedavg"), 3, Setting(cohort=3, executor=Misspoken([1])))
    outcomes = [event.outcome for event in session.ledger.events if event.client == 1]
    assert outcomes == ["fresh", "lost", "lost"]
    assert {event.outcome for event in session.ledger.events if event.client != 1} == {"fresh"}


def test_if_everybody_says_something_else_the_run_ends_with_the_reason() -> None:
    session = QuadraticFederation.draw(2).play(build("fedavg"), 1, Setting(cohort=2, executor=Misspoken([0, 1])))
    with pytest.raises(
        RunError, match=r"round 2: every update was refused \(client 0: the reply is 'hello' \('update', "
    ):
        session.advance(1)


def test_a_score_that_is_none_does_not_end_a_round_in_which_nobody_trains() -> None:
    # round 2: all are cached and none is chosen; whose score is refused counts as lost, the others are reused
    setting = Setting(cohort=3, executor=Misspoken([2], ["score"]))
    session = QuadraticFederation.draw(3, NOISY).play(build("dg_fedreuse", gate=NEVER), 2, setting)
    outcomes = [event.outcome for event in session.ledger.events if event.round_number == 2]
    assert outcomes == ["reused", "reused", "lost"]


def test_the_only_one_to_train_may_err_where_others_answered() -> None:
    # round 2: client 2 has no cache and trains at once, to no avail; the others are scored, and reused
    faults = Listed((ListedFault(1, 2, "lost"),))
    setting = Setting(cohort=3, executor=Misspoken([2]), faults=faults)
    session = QuadraticFederation.draw(3, NOISY).play(build("dg_fedreuse", gate=NEVER), 2, setting)
    outcomes = [event.outcome for event in session.ledger.events if event.round_number == 2]
    assert outcomes == ["reused", "reused", "lost"]


def test_a_lost_store_is_a_new_first_contact() -> None:
    session = QuadraticFederation.draw(3).play(
        build("fedavg", {"name": "error_feedback", "codec": top_k(0.3)}), 1, Setting(cohort=3)
    )
    session.store._records.pop(1)
    session.advance(1)
    outcomes = {event.client: event.outcome for event in session.ledger.events if event.round_number == 2}
    assert outcomes == {0: "fresh", 1: "lost", 2: "fresh"}
    assert [row.kind for row in session.ledger.rows if row.client == 1 and row.direction == "up"] == [
        "update",
        "forgot",
    ]
    session.advance(1)
    assert session.record.contacts[1].ack == 3


DELTA = {"name": "delta", "arithmetic": "bits", "start": "initial"}


@dataclass(frozen=True, eq=False)
class Strangers(QuadraticFederation):
    """Clients that make another initial model than the server, as another version of a library would."""

    def site(self, method: Method, **fields: Any) -> Site:
        return super().site(replace(method, initial=replace(self, seed=self.seed + 1).initial), **fields)


def test_a_client_with_another_initial_model_is_sent_everything_in_the_same_round() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    dense = federation.play(build("fedavg"), 4)
    session = Strangers(**vars(federation)).play(build("fedavg", downlink=DELTA), 4)
    assert all(is_same(*pair) for pair in zip(session.models, dense.models, strict=True))
    assert {event.outcome for event in session.ledger.events} == {"fresh"}
    refused = [row for row in session.ledger.rows if row.status == "refused"]
    assert {(row.kind, row.direction) for row in refused} == {("resync", "up")}
    # everybody once, at first contact: a request to no avail, the word of it, then everything, 12 numbers of 8 bytes
    met = {event.client for event in session.ledger.events}
    assert session.ledger.counts["resyncs"] == len(refused) == len(met)
    for client in met:
        first = [row for row in session.ledger.rows if row.client == client and row.direction == "down"][:2]
        assert [row.group_bytes("model") for row in first][1] == 96


def test_a_client_whose_held_model_was_exchanged_says_so() -> None:
    federation = QuadraticFederation.draw(3, NOISY)
    session, other = (federation.play(build("fedavg", downlink=DELTA), 2, Setting(cohort=3)) for _ in range(2))
    record = session.store.load(1)
    ((ack, memory),) = record.committed(session.record.contacts[1].ack).memories.items()
    spoiled = replace(memory, downlink={"model": federation.initial.weights})
    session.store.save(1, ClientRecord({ack: spoiled}))
    session.advance(1)
    assert is_same(session.model, other.advance(1).model)
    assert session.ledger.counts["resyncs"] == 1


def test_clients_are_evaluated_whatever_they_hold() -> None:
    federation = QuadraticFederation.draw(4, NOISY)
    strangers = Strangers(**vars(federation)).play(build("fedavg", downlink=DELTA), 1)
    mine = federation.play(build("fedavg", downlink=DELTA), 1)
    assert strangers.evaluate("received") == mine.evaluate("received")


def test_durable_is_what_a_checkpoint_holds() -> None:
    assert mark_durable(ServerRecord("s", exchange=7)).durable_exchange == 7
    session = Session(QuadraticFederation.draw(3), build("fed_ef"), Setting(cohort=3, checkpoint_every=2))
    session.advance(5)
    # checkpoints after rounds 2 and 4: the request of round 5 says 4, that of round 4 says 2
    durable = {c.envelope.round_number: c.envelope.durable for c in session.crossings if c.direction == "down"}
    assert durable == {1: 0, 2: 0, 3: 2, 4: 2, 5: 4}


def test_a_client_with_most_of_a_step_is_named() -> None:
    schema = Schema((TensorSpec("w", (1,)),))

    def replies(*lengths: float) -> dict[int, Message]:
        groups = ({"update": Tensors(schema, np.array([length], np.float32))} for length in lengths)
        return {client: Message("update", group) for client, group in enumerate(groups)}

    cohort = Cohort(3, (0, 1, 2, 3), 5, population=Population(np.array([10, 10, 10, 10])))
    assert dominant(replies(1, 1, 1, 2), cohort) == []
    # 97 of 100, where the median client has 1
    (line,) = dominant(replies(1, 1, 1, 97), cohort)
    assert line.startswith("round 3: client 3 has 97% of the step in group update")
    assert "median client has 1.0%" in line
    claimed = replace(cohort, population=Population(np.array([10, 10, 10, 10_000])))
    assert len(dominant(replies(1, 1, 1, 1), claimed)) == 1  # by false counts
    assert dominant(replies(1, 97), cohort) == []  # of two, one always has more
