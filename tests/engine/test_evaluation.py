"""Clients evaluate where they stand: which model, which examples, and that looking changes nothing at either end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from fedreuse.accounting.boundaries.boundary import Reference, modelled
from fedreuse.accounting.ledger import LedgerRow
from fedreuse.accounting.traffic import evaluation_bytes, savings
from fedreuse.accounting.work import total_work
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.cohort import Cohort
from fedreuse.core.metrics import Metrics
from fedreuse.engine.evaluation import Question, Spread, evaluate_clients, start_evaluator
from fedreuse.engine.executors.executor import Executor, ExecutorWrapper, Reply, RunExecutor, Site
from fedreuse.engine.executors.pool import Pool
from fedreuse.engine.executors.serial import Serial
from fedreuse.engine.faults import NoFaults, RandomFaults
from fedreuse.engine.state.records import ClientRecord
from fedreuse.engine.state.state_file import write_state
from fedreuse.testing.cases import Case
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticSetup, Session, Setting
from tests.conformance.cases import CASES
from tests.federation import NOISY, build, is_same, parameters, top_k


def federation() -> QuadraticFederation:
    return QuadraticFederation.draw(6, NOISY)


def site(session: Session, faults: Any = None) -> Site:
    """What an executor needs to play the session's clients."""
    setup = QuadraticSetup(session.method, session.federation)
    faults = faults or NoFaults()
    return session.federation.site(session.method, store=session.store, faults=faults, setup=setup)


def ask(session: Session, executor: Executor, **what: Any) -> dict[int, Metrics]:
    question = Question(Cohort(session.round_number, tuple(range(6)), session.federation.seed), **what)
    return evaluate_clients(session.method, session.record, question, executor, session.ledger, session.schema)


# which model


def test_by_default_the_received_model_is_a_clients_own() -> None:
    session = federation().play(build("fedavg"), 4)
    wanted = {client: session.federation.trainer(client, 4).evaluate(session.model) for client in range(6)}
    assert session.evaluate() == session.evaluate("received") == wanted


def test_a_method_may_have_models_of_its_own() -> None:
    session = federation().play(build("ditto", pull=0.5), 4)
    received, own = session.evaluate("received"), session.evaluate("own")
    assert received == federation().play(build("fedavg"), 4).evaluate()
    assert all(own[client] != received[client] for client in range(6))


def test_fine_tuning_is_the_clients_local_training_from_the_received_model() -> None:
    session = federation().play(build("ditto", pull=0.5), 4)
    wanted = {}
    for client in range(6):
        trainer = session.federation.trainer(client, 4)
        wanted[client] = trainer.evaluate(trainer.train(session.model, purpose="fine-tuning batches").model)
    assert session.evaluate("fine_tuned") == wanted


def test_the_split_travels_with_the_question() -> None:
    session = federation().play(build("fedavg"), 2)
    validation, test = session.evaluate(), session.evaluate(split="test")
    # in this federation the test split has twice the examples
    assert all(test[client].examples == 2 * validation[client].examples for client in range(6))


def test_some_clients_may_be_asked() -> None:
    session = federation().play(build("fedavg"), 2)
    assert list(session.evaluate(clients=(1, 4))) == [1, 4]
    assert session.evaluate(clients=(1,))[1] == session.evaluate()[1]


# looking changes nothing


@pytest.mark.slow
@pytest.mark.parametrize("case", parameters(CASES))
def test_no_method_notices_an_evaluation(case: Case) -> None:
    looked, plain = (Session(federation(), case.build(), Setting(faults=RandomFaults(0.1, 0.1))) for _ in range(2))
    for _ in range(5):
        looked.advance(1)
        plain.advance(1)
        before = write_state(looked.record, looked.schema)
        for which in ("own", "received", "fine_tuned"):
            assert len(looked.evaluate(which)) == 6
        assert write_state(looked.record, looked.schema) == before
    assert is_same(looked.model, plain.model)
    assert write_state(looked.record, looked.schema) == write_state(plain.record, plain.schema)
    for client in range(6):
        one, other = (session.store.load(client) for session in (looked, plain))
        assert write_state(one, looked.schema) == write_state(other, looked.schema)
    assert _facts(looked.ledger.rows) == _facts(plain.ledger.rows)
    assert looked.ledger.events == plain.ledger.events


def _facts(rows: list[LedgerRow]) -> list[LedgerRow]:
    return [replace(row, work=replace(row.work, seconds=0.0)) for row in rows if row.purpose != "evaluation"]


def test_a_checkpoint_after_an_evaluation_has_nothing_to_write() -> None:
    session = federation().play(build("ditto"), 3)
    session.store.take_changed()
    session.evaluate()
    assert session.store.take_changed() == {}


def test_an_evaluation_between_rounds_survives_a_resume() -> None:
    session = federation().play(build("ditto"), 3)
    answers = session.evaluate()
    assert session.resumed().evaluate() == answers


# who plays the clients


def test_strict_equals_fast() -> None:
    session = federation().play(build("ditto", top_k(0.3)), 3)
    for which in ("own", "received", "fine_tuned"):
        assert ask(session, Serial("strict").start(site(session)), model=which) == session.evaluate(which)
    for crossing in session.crossings:
        assert len(crossing.envelope.to_bytes()) == crossing.envelope.size()


@pytest.mark.slow
def test_workers_say_the_same_and_the_store_stays_as_it_was() -> None:
    session = federation().play(build("ditto"), 3)
    before = {client: write_state(record, session.schema) for client, record in session.store.items()}
    pool = Pool(2).start(site(session))
    try:
        for _ in range(2):
            assert ask(session, pool) == session.evaluate()
    finally:
        pool.close()
    assert {client: write_state(record, session.schema) for client, record in session.store.items()} == before


def test_the_evaluator_loses_nobody() -> None:
    session = federation().play(build("fedavg"), 2)
    unreliable = site(session, RandomFaults(lost=0.9))
    assert len(ask(session, start_evaluator(unreliable))) == 6


def test_a_client_that_forgot_is_absent_and_the_server_keeps_its_side() -> None:
    session = federation().play(build("ditto"), 6, Setting(cohort=6))
    session.store.save(2, ClientRecord())
    contacts = dict(session.record.contacts)
    assert list(session.evaluate()) == [0, 1, 3, 4, 5]
    assert session.record.contacts == contacts
    assert [row.status for row in session.ledger.rows if row.purpose == "evaluation" and row.client == 2] == [
        "in_time",
        "refused",
    ]


class Liar(ExecutorWrapper):
    """An executor whose clients answer with these values."""

    def __init__(self, inner: RunExecutor, values: Mapping[str, Any]) -> None:
        super().__init__(inner)
        self._values = values

    def exchange(self, requests: Mapping[int, Envelope]) -> Iterator[Reply]:
        for reply in self._inner.exchange(requests):
            yield replace(reply, envelope=replace(reply.envelope, values=self._values))


@pytest.mark.parametrize(
    "values",
    [{}, {"examples": -1, "loss": 0.0, "score": 0.0}, {"examples": 1.5, "loss": 0.0, "score": 0.0},
     {"examples": 1, "loss": "low", "score": 0.0}, {"examples": 1, "loss": 0.0}],
)  # fmt: skip
def test_an_answer_that_is_none_is_left_out(values: Mapping[str, Any]) -> None:
    session = federation().play(build("fedavg"), 1)
    assert ask(session, Liar(start_evaluator(site(session)), values)) == {}


def test_a_client_without_examples_has_answered() -> None:
    session = federation().play(build("fedavg"), 1)
    values = {"examples": 0, "loss": 0.0, "score": 0.0}
    assert list(ask(session, Liar(start_evaluator(site(session)), values))) == [0, 1, 2, 3, 4, 5]


# accounting


def test_evaluation_has_a_purpose_of_its_own_and_lies_outside_every_boundary() -> None:
    session = federation().play(build("fedavg", top_k(0.3)), 3)
    reference = Reference(session.schema.dense_bytes, 100, 100)
    before = savings(session.ledger.rows, session.ledger.events, reference)
    work = total_work(session.ledger.rows)
    session.evaluate("fine_tuned")
    after = savings(session.ledger.rows, session.ledger.events, reference)
    for name in modelled():
        assert after[name].both.tolist() == before[name].both.tolist()
    assert total_work(session.ledger.rows) == work
    rows = [row for row in session.ledger.rows if row.purpose == "evaluation"]
    assert [(row.direction, row.kind) for row in rows] == [("down", "evaluate")] * 6 + [("up", "evaluate")] * 6
    spent = evaluation_bytes(session.ledger.rows)
    # down: the dense model, and two words (fine_tuned, validation); up: three numbers of 4 bytes
    words = len("fine_tuned") + len("validation")
    assert spent["all_fields"] == {"up_bytes": 6 * 12, "down_bytes": 6 * (session.schema.dense_bytes + words)}
    assert spent["messages"]["down_bytes"] == sum(row.total_bytes for row in rows if row.direction == "down")


def test_without_evaluation_nothing_was_spent_on_it() -> None:
    rows = federation().play(build("fedavg"), 2).ledger.rows
    assert {bytes_ for spent in evaluation_bytes(rows).values() for bytes_ in spent.values()} == {0}


# the spread over clients


def test_a_spread_by_hand() -> None:
    # scores 1/2, 3/10, 4/4; 8 of 16 over all examples; mean 0.6; the worst of three (a tenth, at least one) is 0.3
    answers = {0: Metrics(2, 1.0, 1.0), 1: Metrics(10, 5.0, 3.0), 2: Metrics(4, 2.0, 4.0), 3: Metrics(0, 0.0, 0.0)}
    spread = Spread.of(answers)
    assert spread is not None
    assert (spread.score, spread.clients, spread.examples, spread.loss) == (0.5, 3, 16, 0.5)
    assert spread.mean_score == pytest.approx(0.6)
    assert spread.worst_decile == pytest.approx(0.3)


def test_the_worst_tenth_is_a_mean() -> None:
    # eleven clients with scores 0.0, 0.1, ... 1.0: two are the worst tenth, 0.05 on average
    spread = Spread.of({client: Metrics(10, 0.0, float(client)) for client in range(11)})
    assert spread is not None
    assert spread.worst_decile == pytest.approx(0.05)


def test_nobody_with_examples_is_no_spread() -> None:
    assert Spread.of({}) is None
    assert Spread.of({0: Metrics(0, 0.0, 0.0)}) is None


def test_clients_score_the_deployed_model_behind_a_lossy_downlink() -> None:
    """A sparse difference would deliver another model; the evaluated one arrives to the bit and is in the ledger."""
    federation = QuadraticFederation.draw(4)
    codec = {"name": "top_k", "ratio": 0.2}
    method = Case("fedavg", downlink={"name": "delta", "codec": codec, "start": "initial"}).build()
    session = federation.play(method, 3, Setting(cohort=2))
    answers = session.evaluate("received")
    wanted = {client: federation.trainer(client, 0).evaluate(session.model) for client in range(4)}
    assert answers == wanted
    rows = [row for row in session.ledger.rows if row.purpose == "evaluation" and row.direction == "down"]
    assert {row.group_bytes("model") for row in rows} == {federation.schema.weights.dense_bytes}
