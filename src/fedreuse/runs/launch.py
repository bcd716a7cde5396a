"""One run as a straight line: prepare, rounds, one look at the test split, summary."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fedreuse.accounting.boundaries import MEASURED, Reference, evaluation_bytes, savings
from fedreuse.accounting.ledger import EventRow, Ledger, row_from_plain, row_to_plain
from fedreuse.accounting.memory import memory_of
from fedreuse.accounting.work import total_work
from fedreuse.codecs.dense import Dense
from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import RunError
from fedreuse.core.local_trainer import Metrics
from fedreuse.core.method import methods
from fedreuse.core.model import Model, to_groups
from fedreuse.core.population import Population
from fedreuse.core.randomness import stream
from fedreuse.core.tensors import is_finite, to_arrays
from fedreuse.engine.checkpoint import Checkpointer, restore_clients, restore_server
from fedreuse.engine.client_store import DiskStore, MemoryStore
from fedreuse.engine.evaluation import Question, Spread, evaluate_clients, start_evaluator
from fedreuse.engine.executors.executor import Site, TooFewReplies, WorkersLost, Workplace
from fedreuse.engine.records import ServerRecord
from fedreuse.engine.rounds import mark_durable, run_round
from fedreuse.engine.tensor_store import TensorStore
from fedreuse.learning.data import digest_of
from fedreuse.learning.splits import local_test
from fedreuse.learning.trainer import Trainer, initial_network
from fedreuse.runs.claim import check_facts, check_same, claim
from fedreuse.runs.directory import FINAL_LEDGER, SERVER_FOLDER, RunDirectory, reference_to_plain
from fedreuse.runs.provenance import provenance
from fedreuse.runs.schedule import load_or_freeze
from fedreuse.runs.summary import communication, count_events, last_of
from fedreuse.runs.workers import TaskSetup, evaluator_of, shared_arrays
from fedreuse.wire.envelope import Envelope

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import SplitName
    from fedreuse.core.schema import ModelSchema
    from fedreuse.engine.client_store import ClientStore
    from fedreuse.engine.executors.executor import ExecutorConfig
    from fedreuse.engine.ports import WhichModel
    from fedreuse.learning.data import Split
    from fedreuse.runs.config import RunConfig
    from fedreuse.runs.schedule import Schedule

__all__ = ["Observer", "dense_reference", "run"]


class Observer(Protocol):
    """Who watches a run: a progress bar, a log, nobody."""

    def started(self, config: RunConfig, directory: RunDirectory, first_round: int) -> None:
        """The run begins, or goes on, before this round."""
        ...

    def round_done(self, row: Mapping[str, Any]) -> None:
        """A round is over and safe."""
        ...


def run(
    config: RunConfig,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    observer: Observer | None = None,
    executor: ExecutorConfig | None = None,
) -> RunDirectory:
    """Run a configuration to its end, or go on where it stopped; the same bits either way.

    `executor` stands in the place of the configured one: clients that are not played here, but live elsewhere.
    """
    directory = RunDirectory(Path(out) if out is not None else Path("runs") / config.label)
    if resume and directory.is_complete:
        check_same(config, directory)
        return directory
    directory.lock()
    try:
        return _Run(config, claim(directory, config, resume), observer, executor).to_end()
    except OSError as error:
        raise RunError(
            f"{directory.path}: {error}; what is already written is safe. Mend that (often the disk is full), then "
            "go on with --resume"
        ) from error
    finally:
        directory.release()


class _Run:
    """The pieces of one run, in the order in which they are needed."""

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        observer: Observer | None,
        elsewhere: ExecutorConfig | None = None,
    ) -> None:
        self.config, self.directory, self.observer = config, directory, observer
        self.prepared = config.task.prepare(config.seed)
        if config.rounds.patience is not None and not self.prepared.has_validation:
            raise RunError("rounds.patience needs validation examples, but every client is too small to hold any out")
        data = self.prepared.data
        network = initial_network(config.network, data.shape, data.num_classes, config.seed)
        self.schema: ModelSchema = network.schema
        config.method.needs.check_network(methods.name_of(config.method), self.schema)
        indices = (self.prepared.training, self.prepared.validation)
        objective = (config.task.loss, config.task.metric)
        self.initial = network.read()
        self.trainer = Trainer(network, data, indices, config.local, objective, config.seed)
        self.population = Population(self.prepared.training.sizes)
        self.method = config.build_method()
        self.schedule = _freeze(config, directory)
        self.reference = dense_reference(self.initial)
        self._write_facts()
        self.ledger = Ledger(warn=directory.log)
        self.best = -np.inf
        self.stale_evaluations = 0
        self.tensors = TensorStore(directory.path / SERVER_FOLDER, self.schema)
        is_first = directory.journal.round_number == 0
        self.record, self.store = self._first_state() if is_first else self._stored_state()
        self.checkpointer = Checkpointer(
            self.schema, None if is_first else self.record, self.tensors if config.server_store == "disk" else None
        )
        starter = config.executor if elsewhere is None else elsewhere
        look = evaluator_of(self.trainer, self.prepared.official_validation)
        site = Site(
            Workplace(self.method, self.schema, self.trainer.for_client, look),
            self.store,
            config.faults,
            config.seed,
            TaskSetup.of(config, self.prepared),
            shared_arrays(self.prepared),
            directory.log,
            self.population,
        )
        self.executor = starter.start(site)
        self.evaluator = start_evaluator(site) if elsewhere is None else self.executor
        self.ledger.meter = getattr(self.executor, "meter", None)  # only who stands on real lines has one
        if config.method.is_personal and self.prepared.official_validation is not None:
            self._deal("validation", self.prepared.official_validation)
        self.rows: list[dict[str, Any]] = []
        self.saved = len(self.ledger.rows), len(self.ledger.events)

    def to_end(self) -> RunDirectory:
        """Every round that is left, then the end; workers go home whatever happens."""
        try:
            return self._to_end()
        finally:
            self.executor.close()

    def _to_end(self) -> RunDirectory:
        first = self.directory.journal.round_number + 1
        if self.observer is not None:
            self.observer.started(self.config, self.directory, first)
        self.directory.log(f"rounds {first} to {self.config.rounds.count}")
        for number in range(first, self.config.rounds.count + 1):
            if self._is_stopped():
                break
            self._round(number)
        return self._finish()

    def _round(self, number: int) -> None:
        began = perf_counter()
        look_ahead = self.config.method.needs.look_ahead
        lr_factor = self.config.local.lr_schedule.factor(number)
        cohort = replace(self.schedule.cohort(number, look_ahead), lr_factor=lr_factor, population=self.population)
        seen = len(self.ledger.rows), len(self.ledger.events)
        self.record = self._converse(cohort)
        row = self._measure(number, seen, began)
        self.rows.append(row)
        if number % self.config.checkpoint_every == 0 or number == self.config.rounds.count or self._is_stopped():
            self._checkpoint(number)
        _tell(self.directory, row)
        if self.observer is not None:
            self.observer.round_done(row)

    def _converse(self, cohort: Cohort) -> ServerRecord:
        """One round, tried again as long as too few answered and the executor is willing."""
        seen = len(self.ledger.rows), len(self.ledger.events)
        while True:
            try:
                return run_round(self.method, self.record, cohort, self.executor, self.ledger, self.schema)
            except TooFewReplies as few:
                if not few.may_retry:
                    raise
                self.record = replace(self.record, exchange=few.exchange)
            except WorkersLost:  # a fault of the machine: whole rounds that wait for their checkpoint get it now
                del self.ledger.rows[seen[0] :], self.ledger.events[seen[1] :]
                if self.rows:
                    self._checkpoint(cohort.round_number - 1)
                raise

    def _measure(self, number: int, seen: tuple[int, int], began: float) -> dict[str, Any]:
        model = self.method.server.model(self.record.state)
        evaluation = self._validate(model, number)
        events = self.ledger.events[seen[1] :]
        row: dict[str, Any] = {
            "round": number,
            "validation_score": None if evaluation is None else evaluation.mean_score,
            "validation_loss": None if evaluation is None else evaluation.mean_loss,
        }
        if self.config.method.is_personal:
            row |= _personal_columns(None if evaluation is None else self._ask_everybody(number))
        for outcome in ("fresh", "reused", "dropped", "lost"):
            row[outcome] = sum(event.outcome == outcome for event in events)
        row["seconds"] = perf_counter() - began
        for name, traffic in savings(self.ledger.rows[seen[0] :], events, self.reference, number).items():
            row[f"down_bytes ({name})"] = int(traffic.down[-1])
            row[f"up_bytes ({name})"] = int(traffic.up[-1])
            if name not in MEASURED:
                row[f"dense_bytes ({name})"] = int(traffic.dense_down[-1] + traffic.dense_up[-1])
        return row

    def _validate(self, model: Model, number: int) -> Metrics | None:
        if not all(is_finite(part) for part in (model.weights, model.buffers)):
            raise RunError(
                f"round {number}: the model is no longer finite; training diverged: lower local.optimizer.lr, "
                "set local.clip_norm, or choose buffers: dense"
            )
        if not self.prepared.has_validation or not self.config.rounds.is_evaluated(number):
            return None
        official = self.prepared.official_validation
        num_examples = len(self.prepared.validation.indices if official is None else official)
        evaluation = self.executor.evaluate(model, num_examples)
        self._note_evaluation(evaluation.mean_score)
        return evaluation

    def _note_evaluation(self, score: float) -> None:
        self.stale_evaluations = 0 if score > self.best else self.stale_evaluations + 1
        self.best = max(self.best, score)

    def _is_stopped(self) -> bool:
        patience = self.config.rounds.patience
        return patience is not None and self.stale_evaluations >= patience

    def _checkpoint(self, number: int) -> None:
        num_rows, num_events = self.saved
        rows = {
            "metrics": self.rows,
            "ledger": [row_to_plain(row) for row in self.ledger.rows[num_rows:]],
            "events": [row_to_plain(event) for event in self.ledger.events[num_events:]],
            "counts": [dict(self.ledger.counts)],
        }
        self.directory.journal.commit(number, rows, self.checkpointer.changes(self.record, self.store))
        self.record = mark_durable(self.checkpointer.settled(self.record))
        self.rows = []
        self.saved = len(self.ledger.rows), len(self.ledger.events)

    def _first_state(self) -> tuple[ServerRecord, ClientStore]:
        if self.config.client_store == "disk":
            shutil.rmtree(self.directory.path / "clients", ignore_errors=True)
        self.tensors.keep_only(())
        return ServerRecord(self.method.server.init(self.initial, self.population)), self._store({})

    def _stored_state(self) -> tuple[ServerRecord, ClientStore]:
        journal, where = self.directory.journal, str(self.directory.path)
        blobs = journal.blobs()
        record = restore_server(blobs, self.schema, where, self.tensors)
        self.ledger.rows = [row_from_plain(row) for row in journal.rows("ledger")]
        self.ledger.events = [EventRow(**row) for row in journal.rows("events")]
        self.ledger.counts = (journal.rows("counts") or [{}])[-1]
        for row in journal.rows("metrics"):
            if row["validation_score"] is not None:
                self._note_evaluation(row["validation_score"])
        return record, self._store(restore_clients(blobs, self.schema, where))

    def _store(self, records: dict[int, Any]) -> ClientStore:
        if self.config.client_store == "disk":
            return DiskStore(self.directory.path / "clients", self.schema)
        return MemoryStore(records)

    def _write_facts(self) -> None:
        for name, index in (("partition", self.prepared.training), ("validation", self.prepared.validation)):
            if not (self.directory.path / f"{name}.npz").exists():
                index.save(self.directory.path / f"{name}.npz")
        facts = {
            "run_id": self.config.run_id,
            "reference": reference_to_plain(self.reference),
            "digests": {
                "data": self.prepared.digest,
                "partition": self.prepared.training.digest,
                "validation": self.prepared.validation.digest,
                "schedule": self.schedule.digest,
                "schema": self.schema.digest,
                "initial_model": digest_of_model(self.initial),
            },
            "partition_redraws": self.prepared.training.redraws,
            "parameters": self.schema.weights.size,
            "input_shape": list(self.prepared.data.shape),
            "num_classes": self.prepared.data.num_classes,
        }
        known = self.directory.path / "provenance.json"
        if known.exists():
            check_facts(self.directory.provenance, facts, self.directory)
        else:
            self.directory.write_json("provenance.json", {**provenance(), **facts})

    def _finish(self) -> RunDirectory:
        journal = self.directory.journal
        model = self.method.server.model(self.record.state)
        test = self._test(model)
        metrics = journal.rows("metrics")
        summary = {
            "run_id": self.config.run_id,
            "method": self.config.to_plain()["method"]["name"],
            "rounds": len(metrics),
            "test_score": test["score"],
            "test_loss": test["loss"],
            "test_examples": test["examples"],
            "validation_score": last_of(metrics, "validation_score"),
            "validation_loss": last_of(metrics, "validation_loss"),
            **({"personal_test": test["personal"]} if "personal" in test else {}),
            "communication": communication(self.ledger, self.reference, len(metrics)),
            "evaluation": evaluation_bytes(self.ledger.rows),
            "events": count_events(self.ledger),
            "counts": self.ledger.counts,
            "work": asdict(total_work(self.ledger.rows)),
            "memory_bytes": memory_of(self.record, self.store),
            "seconds": sum(row["seconds"] for row in metrics),
            "model_digest": digest_of_model(model),
        }
        arrays = {
            name: array
            for part in (model.weights, model.buffers, model.counters)
            for name, array in to_arrays(part).items()
        }
        self.directory.finish(summary, arrays)
        return self.directory

    def _test(self, model: Model) -> dict[str, Any]:
        """The one look at the test split; after a crash right after it, the same look at the same model counts once."""
        opening = self.prepared.test.open(self.directory.path / "test-opened.json", digest_of_model(model))
        if opening.result is None:
            result = self.trainer.evaluate(model, opening.split)
            found = {"score": result.mean_score, "loss": result.mean_loss, "examples": result.examples}
            personal = {"personal": self._test_everybody(opening.split)} if self.config.method.is_personal else {}
            opening.record({**found, **personal})
        else:
            self.ledger.rows += [row_from_plain(row) for row in self.directory.journal.rows(FINAL_LEDGER)]
        assert opening.result is not None
        return opening.result

    def _test_everybody(self, split: Split) -> dict[str, Any]:
        """Every client on its own share of the test split: with its own model, and the controls beside it.

        The controls are the global model as it is, and the global model after the client's local epochs.
        """
        self._deal("test", split)
        number, seen = self.directory.journal.round_number, len(self.ledger.rows)
        looks: dict[str, WhichModel] = {"own": "own", "global": "received", "fine_tuned": "fine_tuned"}
        spreads = {name: self._ask_everybody(number, which, "test") for name, which in looks.items()}
        rows = [row_to_plain(row) for row in self.ledger.rows[seen:]]
        self.directory.journal.commit(number, {FINAL_LEDGER: rows})
        return {name: None if spread is None else asdict(spread) for name, spread in spreads.items()}

    def _ask_everybody(self, number: int, which: WhichModel = "own", split: SplitName = "validation") -> Spread | None:
        everybody = Cohort(number, tuple(range(len(self.population))), self.config.seed)
        question = Question(everybody, which, split)
        answers = evaluate_clients(self.method, self.record, question, self.evaluator, self.ledger, self.schema)
        return Spread.of(answers)

    def _deal(self, name: SplitName, split: Split) -> None:
        labels, seed = self.prepared.data.train.labels, self.config.seed
        index = local_test(
            self.prepared.training, labels, split.labels, lambda client: stream(seed, f"local {name}", 0, client)
        )
        self.trainer.deal(name, split, index)


def dense_reference(model: Model) -> Reference:
    """What dense FedAvg costs one client in a round: field bytes, and the size of real envelopes."""
    schema = model.schema
    rng = np.random.default_rng(0)

    def size(kind: str, main: str) -> int:
        groups = to_groups(model, main)
        parcels = {name: Dense().encode(tensors, schema.of_group(name), rng) for name, tensors in groups.items()}
        return Envelope(kind, 1, 1, parcels=parcels).size()

    return Reference(schema.dense_bytes, size("train", "model"), size("update", "update"))


def digest_of_model(model: Model) -> str:
    """SHA-256 of all tensors."""
    return digest_of(model.weights.values, model.buffers.values, model.counters.values)


def _freeze(config: RunConfig, directory: RunDirectory) -> Schedule:
    rounds = config.rounds
    return load_or_freeze(
        directory.path / "schedule.json",
        config.task.clients,
        rounds.count,
        rounds.cohort,
        rounds.availability,
        config.seed,
    )


def _personal_columns(spread: Spread | None) -> dict[str, float | None]:
    """How clients fare with their own models on their own validation examples."""
    return {
        "personal_validation_score": None if spread is None else spread.score,
        "personal_validation_mean": None if spread is None else spread.mean_score,
        "personal_validation_worst_decile": None if spread is None else spread.worst_decile,
    }


def _tell(directory: RunDirectory, row: Mapping[str, Any]) -> None:
    score = "" if row["validation_score"] is None else f" validation {row['validation_score']:.4f}"
    directory.log(f"round {row['round']}:{score} fresh {row['fresh']} reused {row['reused']} lost {row['lost']}")
