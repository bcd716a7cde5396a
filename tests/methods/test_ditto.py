"""Ditto: a round by hand, the identities of its card, a straight-line reference, whole runs with local test data."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.traffic import savings
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.events import RoundDone
from fedreuse.core.listener import Listener
from fedreuse.core.model import Model
from fedreuse.core.randomness import stream
from fedreuse.engine.faults import RandomFaults
from fedreuse.lab.plans.claims import Contrast
from fedreuse.lab.plans.observations import value_of
from fedreuse.lab.plans.plan import Plan
from fedreuse.learning.data import Data
from fedreuse.learning.datasets.synthetic import Synthetic
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.splits import Opening
from fedreuse.learning.trainer import Trainer, initial_network
from fedreuse.methods.ditto import Ditto
from fedreuse.report.answer import answer, answers
from fedreuse.report.results import read_run
from fedreuse.report.tables import comparison
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from fedreuse.studies.tuning.measures import Measure
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.ditto import ditto
from tests.references.local import Problem
from tests.tiny import results, tiny


def personal(session: Session) -> dict[int, Model]:
    """v_i of everybody who has trained."""
    return {
        client: session.store.load(client).memories[contact.ack].state.model
        for client, contact in session.record.contacts.items()
        if contact.ack
    }


def problem_of(federation: QuadraticFederation, num_rounds: int, cohort: int = 3) -> Problem:
    """Plain arrays, with the noise of personal batches."""
    problem = plain_problem(federation, num_rounds, cohort)
    for t in range(1, num_rounds + 1):
        for i in range(len(federation.examples)):
            shape = (federation.steps[i], len(problem.weights))
            drawn = stream(federation.seed, "personal batches", t, i).standard_normal(shape)
            problem.noise[t, i, "personal batches"] = federation.training.noise * drawn
    return problem


# by hand


def test_two_rounds_by_hand() -> None:
    """One client, F = 1/2 w^2, one step of 0.1, pull 2."""
    size = 12
    federation = QuadraticFederation(
        curvatures=np.ones((1, size)),
        optima=np.zeros((1, size)),
        examples=np.array([10]),
        steps=np.array([1]),
        means=np.zeros((1, 3)),
        variances=np.ones((1, 3)),
        training=QuadraticTraining(lr=0.1),
        has_buffers=False,
    )
    session = federation.play(build("ditto", pull=2.0), 2, Setting(cohort=1))
    w = federation.initial.weights.values
    # round 1: v starts at w_1, where the pull is zero: v = w_2 = 0.9 w
    # round 2: w_3 = 0.81 w; v = 0.9 w - 0.1 (0.9 w + 2 (0.9 w - 0.9 w)) = 0.81 w
    np.testing.assert_allclose(session.model.weights.values, 0.81 * w, rtol=1e-13)
    np.testing.assert_allclose(personal(session)[0].weights.values, 0.81 * w, rtol=1e-13)
    # with two steps the pull shows: round 1: v = 0.9 w, then 0.9 w - 0.1 (0.9 w + 2 (0.9 w - w)) = 0.83 w
    session = replace(federation, steps=np.array([2])).play(build("ditto", pull=2.0), 1, Setting(cohort=1))
    np.testing.assert_allclose(session.model.weights.values, 0.81 * w, rtol=1e-13)
    np.testing.assert_allclose(personal(session)[0].weights.values, 0.83 * w, rtol=1e-13)


# the identities of the card


@pytest.mark.parametrize("pull", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("link", [None, top_k(0.3), {"name": "error_feedback", "codec": top_k(0.3)}], ids=str)
def test_the_shared_model_is_fedavgs_bit_for_bit(pull: float, link: object) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session, plain = (federation.play(method, 5) for method in (build("ditto", link, pull=pull), build("fedavg", link)))
    for one, other in zip(session.models, plain.models, strict=True):
        assert is_same(one, other)


@pytest.mark.slow
def test_without_a_pull_a_personal_model_depends_on_its_own_data_alone() -> None:
    one = QuadraticFederation.draw(training=NOISY)
    visits = {i: sum(i in one.cohort(number, 3).clients for number in range(1, 9)) for i in range(8)}
    mine = max(visits, key=visits.__getitem__)
    assert visits[mine] >= 3
    others = np.arange(8) != mine
    changed = {name: np.where(others[:, None], 3.0, getattr(one, name)) for name in ("curvatures", "optima", "means")}
    other = replace(one, **changed)
    for pull, is_alone in ((0.0, True), (0.5, False)):
        left, right = (federation.play(build("ditto", pull=pull), 8) for federation in (one, other))
        assert is_same(personal(left)[mine], personal(right)[mine]) is is_alone
        assert not is_same(left.model, right.model)


def test_a_strong_pull_holds_the_personal_model_at_the_shared_one() -> None:
    # lr * pull = 1: v = w_t - lr grad in every step, so |v - w_t| <= lr |grad|, which falls with lr
    federation = QuadraticFederation.draw(4, has_buffers=False)
    distances = []
    for lr in (1e-1, 1e-2, 1e-3, 1e-4):
        training = QuadraticTraining(lr=lr)
        session = replace(federation, training=training).play(build("ditto", pull=1 / lr), 3, Setting(cohort=4))
        received = session.models[-2].weights.values
        distances.append(max(np.abs(model.weights.values - received).max() for model in personal(session).values()))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-3


def test_a_larger_pull_never_leaves_further() -> None:
    federation = QuadraticFederation.draw(4, QuadraticTraining(lr=0.05), has_buffers=False)
    found = []
    for pull in (0.0, 0.5, 2.0, 8.0):
        session = federation.play(build("ditto", pull=pull), 4, Setting(cohort=4))
        received = session.models[-2].weights.values
        found.append([np.linalg.norm(model.weights.values - received) for model in personal(session).values()])
    for weaker, stronger in pairwise(found):
        assert (np.array(stronger) < np.array(weaker)).all()


def test_bytes_are_those_of_fedavg_and_training_is_twice_the_work() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session, plain = (federation.play(build(name, top_k(0.3)), 5) for name in ("ditto", "fedavg"))
    assert [row.total_bytes for row in session.ledger.rows] == [row.total_bytes for row in plain.ledger.rows]
    twice = [2 * row.work.training_steps for row in plain.ledger.rows]
    assert [row.work.training_steps for row in session.ledger.rows] == twice
    session.evaluate("own")
    reference = Reference(session.schema.dense_bytes, 1, 1)
    found, alone = (savings(one.ledger.rows, one.ledger.events, reference) for one in (session, plain))
    assert {*found} == {*alone, "with_evaluation"}  # which only counts where clients evaluate
    for name, traffic in alone.items():
        np.testing.assert_array_equal(found[name].both, traffic.both)


# state


def test_only_those_who_trained_have_a_model_of_their_own() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("ditto"), 1)
    selected = federation.cohort(1, 3).clients
    assert sorted(personal(session)) == list(selected)
    answers = session.evaluate("own")
    for client in range(8):
        own = personal(session)[client] if client in selected else federation.initial
        assert answers[client] == federation.trainer(client, 1).evaluate(own)


def test_buffers_and_counters_are_personal() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("ditto"), 6)
    visits = {i: sum(i in federation.cohort(t, 3).clients for t in range(1, 7)) for i in range(8)}
    for client, model in personal(session).items():
        assert model.counters.values[0] == visits[client] * federation.steps[client]
        assert (model.buffers["norm.running_var"] != session.model.buffers["norm.running_var"]).all()


def test_a_lost_reply_leaves_the_personal_model_where_it_was() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    session = federation.play(build("ditto"), 8, Setting(faults=RandomFaults(lost=0.2, late=0.2)))
    absorbed = {
        i: sum(event.client == i and event.outcome == "fresh" for event in session.ledger.events) for i in range(5)
    }
    for client, model in personal(session).items():
        assert model.counters.values[0] == absorbed[client] * federation.steps[client]


def test_a_pull_that_diverges_is_an_error_that_names_the_way_out() -> None:
    federation = QuadraticFederation.draw(3, QuadraticTraining(lr=0.1), has_buffers=False)
    federation = replace(federation, steps=np.full(3, 400))
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(RunError, match=r"method\.pull 1000.0 is too large"),
    ):
        federation.play(build("ditto", pull=1000.0), 1)


@pytest.mark.parametrize(("field", "value"), [("pull", -1.0), ("server_lr", -1.0)])
def test_values_out_of_range_are_refused(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{field} must not be negative, got {value}"):
        Ditto(**{field: value})


# the reference


def assert_is(session: Session, pull: float, wrong: str = "") -> None:
    shared, own = ditto(problem_of(session.federation, session.round_number), pull, wrong)
    for model, (weights, statistics, counter) in zip(session.models[1:], shared, strict=True):
        assert_close(model, weights, statistics, counter)
    found = personal(session)
    assert found.keys() == own.keys()
    for client, wanted in own.items():
        assert_close(found[client], wanted.weights, wanted.statistics, wanted.counter)


def test_equals_the_reference() -> None:
    session = QuadraticFederation.draw(training=NOISY).play(build("ditto", pull=0.7), 6)
    assert any(sum(i in session.federation.cohort(t, 3).clients for t in range(1, 7)) > 1 for i in range(8))
    assert_is(session, 0.7)


@pytest.mark.parametrize("wrong", ["new anchor", "fixed", "shared buffers"])
def test_the_mistakes_of_public_code_are_not_ours(wrong: str) -> None:
    session = QuadraticFederation.draw(training=NOISY).play(build("ditto", pull=0.7), 6)
    with pytest.raises(AssertionError):
        assert_is(session, 0.7, wrong)


# whole runs


def personal_run(folder: Path, *overrides: str, **parts: Any) -> Any:
    return run(tiny("method=ditto", *overrides, **parts), folder)


@pytest.mark.slow
def test_a_run_measures_personal_models_beside_fedavgs(tmp_path: Path) -> None:
    found = personal_run(tmp_path / "ditto")
    plain = run(tiny(), tmp_path / "fedavg")
    assert results(found)["model"] == results(plain)["model"]
    assert found.summary["test_score"] == plain.summary["test_score"]
    counted = {name: one for name, one in found.summary["communication"].items() if name != "with_evaluation"}
    assert counted == plain.summary["communication"]
    # validation scores of personal models stand in the rows of evaluated rounds
    rows = found.metrics()
    evaluated = [row["round"] for row in rows if row["personal_validation_score"] is not None]
    assert evaluated == [row["round"] for row in rows if row["validation_score"] is not None] == [1, 2, 4]
    # the summary compares three models on the same local test data
    test = found.summary["personal_test"]
    assert list(test) == ["own", "global", "fine_tuned"]
    assert len({(look["clients"], look["examples"]) for look in test.values()}) == 1
    for look in test.values():
        assert 0 <= look["worst_decile"] <= look["mean_score"] <= 1
    assert "personal_test" not in plain.summary


@pytest.mark.slow
def test_evaluation_is_in_the_ledger_and_outside_every_boundary(tmp_path: Path) -> None:
    found = personal_run(tmp_path / "run")
    rows = [row for row in found.ledger() if row.purpose == "evaluation"]
    # 6 clients, 3 evaluated rounds and 3 looks at the end, each down and up
    assert len(rows) == 6 * (3 + 3) * 2
    spent = found.summary["evaluation"]["messages"]
    assert spent["down_bytes"] == sum(row.total_bytes for row in rows if row.direction == "down")
    assert spent["up_bytes"] == sum(row.total_bytes for row in rows if row.direction == "up")
    traffic = found.traffic()["messages"]
    assert traffic.both.sum() == sum(row.total_bytes for row in found.ledger() if row.purpose == "training")
    trained = sum(row.work.training_steps for row in found.ledger() if row.purpose == "training")
    assert found.summary["work"]["training_steps"] == trained
    assert sum(row.work.training_steps for row in rows) > 0  # fine-tuning, told apart


@pytest.mark.slow
@pytest.mark.parametrize(
    "override", ["executor={name: serial, mode: strict}", "client_store=disk", "checkpoint_every=3"]
)
def test_a_personal_run_ends_in_the_same_bits_however_it_is_run(tmp_path: Path, override: str) -> None:
    one, other = results(personal_run(tmp_path / "one")), results(personal_run(tmp_path / "other", override))
    del one["summary"]["run_id"], other["summary"]["run_id"]
    assert one == other


@pytest.mark.slow
def test_a_personal_run_resumes_to_the_same_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = results(personal_run(tmp_path / "whole"))

    class Stop(BaseException):
        pass

    class Stopper(Listener):
        def round_done(self, event: RoundDone) -> None:
            if event.round_number == 2:
                raise Stop

    config = tiny("method=ditto")
    with pytest.raises(Stop):
        run(config, tmp_path / "stopped", listeners=[Stopper()])
    # two more stops: before the result of the look at the test split is recorded, and right after it
    with monkeypatch.context() as patch:
        patch.setattr(Opening, "record", lambda *_: (_ for _ in ()).throw(Stop()))
        with pytest.raises(Stop):
            run(config, tmp_path / "stopped", resume=True)
    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "finish", lambda *_, **__: (_ for _ in ()).throw(Stop()))
        with pytest.raises(Stop):
            run(config, tmp_path / "stopped", resume=True)
    opened = json.loads((tmp_path / "stopped" / "test-opened.json").read_text())
    assert list(opened["result"]["personal"]) == ["own", "global", "fine_tuned"]
    assert results(run(config, tmp_path / "stopped", resume=True)) == whole


def test_no_client_reaches_the_test_split_before_it_is_dealt() -> None:
    config = tiny()
    prepared = config.task.prepare(config.seed)
    data, objective = prepared.data, (config.task.loss, config.task.scoring)
    network = initial_network(config.network, data.shape, data.num_classes, config.seed)
    trainer = Trainer(network, data, (prepared.training, prepared.validation), config.local, objective, config.seed)
    local_trainer = trainer.for_client(0, 1)
    held_out = local_trainer.evaluate(trainer.initial)
    assert held_out == trainer.evaluate(trainer.initial, index=prepared.validation.of(0))
    with pytest.raises(RunError, match="the test split is sealed until the run ends"):
        local_trainer.evaluate(trainer.initial, "test")
    some = data.train.at(np.arange(10))
    trainer.deal("test", some, ClientIndex(np.array([0, 4, 4, 4, 4, 4, 10]), np.arange(10)))
    assert local_trainer.evaluate(trainer.initial, "test") == trainer.evaluate(trainer.initial, some.at(np.arange(4)))
    assert trainer.for_client(1, 1).evaluate(trainer.initial, "test").examples == 0


@pytest.mark.slow
def test_lost_replies_do_not_touch_evaluation(tmp_path: Path) -> None:
    found = personal_run(tmp_path / "run", faults={"name": "random", "lost": 0.4})
    rows = [row for row in found.ledger() if row.purpose == "evaluation"]
    assert len(rows) == 6 * (3 + 3) * 2
    assert {row.status for row in rows} == {"in_time"}


@pytest.mark.slow
def test_without_validation_only_the_end_is_measured(tmp_path: Path) -> None:
    found = personal_run(tmp_path / "run", "task.validation=0.0")
    assert all(row["personal_validation_score"] is None for row in found.metrics())
    assert found.summary["personal_test"]["own"]["clients"] == 6


@pytest.mark.slow
def test_an_official_validation_split_is_dealt_to_the_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Synthetic.load

    def with_validation(self: Synthetic, folder: Path | None) -> Data:
        data = load(self, folder)
        return replace(data, validation=data.train.at(np.arange(30)))

    monkeypatch.setattr(Synthetic, "load", with_validation)
    found = personal_run(tmp_path / "run")
    scores = [row["personal_validation_score"] for row in found.metrics()]
    assert [score is not None for score in scores] == [True, True, False, True]


@pytest.mark.slow
def test_workers_see_the_same_personal_models(tmp_path: Path) -> None:
    one = results(personal_run(tmp_path / "one"))
    assert results(personal_run(tmp_path / "other", "executor={name: pool, workers: 2}")) == one


@pytest.mark.slow
def test_personal_models_pay_off_on_skewed_digits(tmp_path: Path) -> None:
    """With strongly skewed labels each client's own model beats the shared one on data like its own."""
    overrides = ["method=ditto", "rounds.count=8", "rounds.evaluate_every=8"]
    config = tiny(
        *overrides,
        task={"name": "digits", "clients": 10, "partition": {"name": "dirichlet", "alpha": 0.1, "on_small": "move"}},
        rounds={"count": 8, "cohort": 5},
    )
    test = run(config, tmp_path / "run").summary["personal_test"]
    assert test["own"]["score"] > test["global"]["score"]
    assert test["fine_tuned"]["score"] > test["global"]["score"]


@pytest.mark.slow
def test_runs_are_judged_by_the_own_models(tmp_path: Path) -> None:
    """Tables, plans and searches read the personal scores; files and the model's digest stay those of FedAvg."""
    found = personal_run(tmp_path / "ditto")
    result, test = read_run(found), found.summary["personal_test"]["own"]["score"]
    scores = [row["personal_validation_score"] for row in found.metrics() if row["personal_validation_score"]]
    assert (result.test_score, result.validation_score, result.is_personal) == (test, scores[-1], True)
    assert found.summary["test_score"] != test
    assert Measure("validation").of([found]) == scores[-1]
    assert Measure("best_validation").of([found]) == max(scores)
    assert value_of(Plan((Contrast("A", "B"),)))(result) == test
    assert result.history.taken("validation_score")[1].tolist() == scores
    assert "scores of the clients' own models" in comparison([result])[0].legend
    assert "ccuracy of own models" in answer(answers([result])[0])
    assert "evaluation by clients: the dense model goes to 6 clients 6 times" in (found.path / "log.txt").read_text()
    both, messages = (found.traffic()[name].both.sum() for name in ("with_evaluation", "messages"))
    assert both - messages == sum(found.summary["evaluation"]["messages"].values())
    plain = read_run(run(tiny(), tmp_path / "fedavg"))
    assert not plain.is_personal
    assert "with_evaluation" not in plain.savings
