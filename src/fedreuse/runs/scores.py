"""Scores of a run: on validation examples, at every client with its own model, and once on the test split."""

from __future__ import annotations

from functools import reduce
from math import isinf, isnan
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.dense import dense_reference
from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import RunError
from fedreuse.core.metrics import Metrics, score_of
from fedreuse.core.tensors import is_finite
from fedreuse.engine.evaluation import Question, Spread, evaluate_clients
from fedreuse.robustness.poisoning import success_rate
from fedreuse.runs.facts import digest_of_model
from fedreuse.store.openings import RECORD_FILE, note_opening

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.local_trainer import SplitName
    from fedreuse.core.model import Model
    from fedreuse.engine.executors.executor import RunExecutor
    from fedreuse.engine.ports import WhichModel
    from fedreuse.learning.data import Split
    from fedreuse.runs.federation import Federation
    from fedreuse.runs.live import LiveRun

__all__ = ["EarlyStopping", "Scores", "evaluation_note"]

_ROUNDING = 1e-6
"""Tolerance of a share, whose sums are rounded."""


_LOST_SHARE, _LOST_LEAST = 0.5, 0.05
"""Share of the best gain, and the least difference, whose loss is a collapse."""


class EarlyStopping:
    """Early stopping: counts consecutive evaluations without improvement; `best_round` has the best score so far."""

    def __init__(self, patience: int | None, earlier: list[dict[str, Any]]) -> None:
        """`earlier` are the rows of the rounds before a resume."""
        self._patience = patience
        self._first, self._best, self._stale = float("nan"), float("-inf"), 0
        self.best_round = 0
        self.collapse = ""
        """Sentence about the last score if it has lost most of what the best one had gained; else empty."""
        for row in earlier:
            self.note(row)

    def note(self, row: dict[str, Any]) -> None:
        """Take a round's row into account."""
        score = score_of(row)
        if score is not None:
            self._first = score if isnan(self._first) else self._first
            lost, gained = self._best - score, self._best - self._first
            is_lost = gained > 0 and lost > _LOST_SHARE * gained and lost > _LOST_LEAST
            self.collapse = f"the validation score fell from {self._best:.4f} to {score:.4f}" if is_lost else ""
            self._stale = 0 if score > self._best else self._stale + 1
            self.best_round = row.get("round", 0) if score > self._best else self.best_round
            self._best = max(self._best, score)

    @property
    def is_due(self) -> bool:
        """True if the run should end here."""
        return self._patience is not None and self._stale >= self._patience


class Scores:
    """Evaluation of a live run; `executor` holds the validation examples, `evaluator` reaches every client."""

    def __init__(self, live: LiveRun, executor: RunExecutor, evaluator: RunExecutor) -> None:
        """Deal an official validation split to the clients if they have models of their own."""
        self._live, self._executor, self._evaluator = live, executor, evaluator
        self._federation = live.federation
        self._is_personal = live.federation.config.method.is_personal
        self._is_at_home = live.federation.prepared.is_at_home
        self._scoring = live.federation.config.task.scoring
        official = live.federation.prepared.official_validation
        self._spread: Spread | None = None
        if self._is_personal and official is not None:
            live.federation.deal("validation", official)

    def after_round(self, number: int) -> dict[str, float | None]:
        """Return the scores of a round by column; None where the round is not evaluated or the score undefined."""
        evaluation = self._validate(self._live.model, number)
        values = {} if evaluation is None else _defined(self._scoring.read(evaluation))
        row = {f"validation_{name}": values.get(name) for name in ("score", "loss", *self._scoring.others)}
        if self._is_at_home:
            row |= _spread_columns(None if evaluation is None else self._spread)
        if self._is_personal:
            row |= self._personal_columns(None if evaluation is None else self._spread_of(number))
        return row

    def _validate(self, model: Model, number: int) -> Metrics | None:
        if not all(is_finite(part) for part in (model.weights, model.buffers)):
            raise RunError(
                f"round {number}: the model is no longer finite; training diverged: lower local.optimizer.lr, "
                "set local.clip_norm, or choose buffers: dense"
            )
        rounds = self._federation.config.rounds
        if not self._federation.prepared.has_validation or not rounds.is_evaluated(number):
            return None
        if self._is_at_home:
            return self._validate_at_clients(number)
        return self._executor.evaluate(model, self._federation.num_validation)

    def _validate_at_clients(self, number: int) -> Metrics | None:
        """Evaluate at every client on the examples it holds out; each example has the same weight."""
        answers = self._answers(number, "received", "validation")
        self._spread = Spread.of(answers, self._scoring.read)
        metrics = {client: answer for client, answer in answers.items() if answer.examples}
        scores = ", ".join(f"{client} {self._scoring.read(one)['score']:.4f}" for client, one in metrics.items())
        self._live.directory.log(f"round {number}: validation by client: {scores or 'no client has examples'}")
        return reduce(Metrics.__add__, metrics.values()) if metrics else None

    def test(self, model: Model) -> dict[str, Any]:
        """Evaluate a model on the test split, once; a run that crashed after that reads the recorded result."""
        directory = self._live.directory
        config, digest = self._federation.config, digest_of_model(model)
        opening = self._federation.prepared.test.open(
            directory.path / RECORD_FILE,
            digest,
            lambda examples: note_opening(directory.path, config.to_plain(), config.run_id, examples, digest),
        )
        if opening.result is None:
            opening.record({**self._test_at_server(model, opening.split), **self._test_at_clients(opening.split)})
        elif self._is_personal:
            self._live.ledger.rows.extend(self._live.checkpoints.read_final_rows())
        assert opening.result is not None
        return opening.result

    def _test_at_server(self, model: Model, split: Split) -> dict[str, Any]:
        if not len(split):  # the examples are at the clients
            return {"score": None, "loss": None, "examples": 0}
        result = self._federation.trainer.evaluate(model, split)
        values = _defined(self._scoring.read(result))
        others = {"metrics": {name: values[name] for name in self._scoring.others}} if self._scoring.others else {}
        scores = {"score": values["score"], "loss": values["loss"], "examples": result.examples, **others}
        rate = success_rate(self._federation, model, split)
        return scores if rate is None else {**scores, "attack_success": rate}

    def _test_at_clients(self, split: Split) -> dict[str, Any]:
        """Evaluate at the clients: each with its own model, or with the server's if the data stay there."""
        if self._is_personal:
            return {"personal": self._test_personal(split)}
        if not self._is_at_home:
            return {}
        num_rows = len(self._live.ledger.rows)
        spread = self._spread_of(self._live.round_number, "received", "test")
        self._live.checkpoints.write_final_rows(self._live.ledger.rows[num_rows:])
        if spread is None:
            return {}
        here = {} if len(split) else {"score": spread.score, "loss": spread.loss, "examples": spread.examples}
        return {**here, "clients": spread.to_plain()}

    def _test_personal(self, split: Split) -> dict[str, Any]:
        """Evaluate every client's own model and two controls on its share of the test split.

        The controls are the global model as it is, and the global model after the client's local epochs.
        """
        if not self._is_at_home:
            self._federation.deal("test", split)
        number, num_rows = self._live.round_number, len(self._live.ledger.rows)
        models: dict[str, WhichModel] = {"own": "own", "global": "received", "fine_tuned": "fine_tuned"}
        spreads = {name: self._spread_of(number, which, "test") for name, which in models.items()}
        self._live.checkpoints.write_final_rows(self._live.ledger.rows[num_rows:])
        return {name: None if spread is None else spread.to_plain() for name, spread in spreads.items()}

    def _spread_of(self, number: int, which: WhichModel = "own", split: SplitName = "validation") -> Spread | None:
        return Spread.of(self._answers(number, which, split), self._scoring.read)

    def _answers(self, number: int, which: WhichModel, split: SplitName) -> dict[int, Metrics]:
        live, federation = self._live, self._federation
        all_clients = Cohort(number, tuple(range(len(federation.population))), federation.config.seed)
        question = Question(all_clients, which, split)
        answers = evaluate_clients(
            federation.method, live.record, question, self._evaluator, live.ledger, federation.schema
        )
        return {client: answer for client, answer in answers.items() if self._is_possible(number, client, answer)}

    def _is_possible(self, number: int, client: int, answer: Metrics) -> bool:
        """Return whether a client's scores can be true; others are logged and left out."""
        score = self._scoring.read(answer)["score"] if answer.examples else 0.0
        is_share = self._federation.config.task.metric.is_share
        if isinf(score) or (is_share and not isnan(score) and not -_ROUNDING <= score <= 1 + _ROUNDING):
            why = f"score {score} is impossible"
            self._live.directory.log(f"round {number}: evaluation of client {client} refused: {why}")
            return False
        return True

    def _personal_columns(self, spread: Spread | None) -> dict[str, float | None]:
        """Return the columns of personal models on their clients' validation examples."""
        values = {} if spread is None else _defined(spread.others)
        others = {f"personal_validation_{name}": values.get(name) for name in self._scoring.others}
        return {
            "personal_validation_score": None if spread is None else spread.score,
            "personal_validation_mean": None if spread is None else spread.mean_score,
            "personal_validation_worst_decile": None if spread is None else spread.worst_decile,
            **others,
        }


def evaluation_note(federation: Federation) -> str:
    """Return a sentence with the bytes of evaluation by clients that a run will send; empty if clients do not evaluate.

    They depend on the number of evaluations alone: every client gets the dense model each time. A budget contains them.
    """
    config, prepared = federation.config, federation.prepared
    if not (config.method.is_personal or prepared.is_at_home):
        return ""
    rounds, dense = config.rounds, dense_reference(federation.schema)
    validations = rounds.num_evaluations * prepared.has_validation
    times = validations + (0 if config.test == "sealed" else 3 if config.method.is_personal else 1)
    sent = times * config.task.clients * dense.request_bytes
    share = sent / (rounds.count * rounds.cohort * (dense.request_bytes + dense.reply_bytes))
    return (
        f"evaluation by clients: the dense model goes to {config.task.clients} clients {times} times, {sent:,} bytes, "
        f"{share:.1%} of dense FedAvg's messages for training; raise rounds.evaluate_every to send less"
    )


def _spread_columns(spread: Spread | None) -> dict[str, float | None]:
    """Return the columns of one model over clients that keep their data."""
    return {
        "client_validation_mean": None if spread is None else spread.mean_score,
        "client_validation_worst_decile": None if spread is None else spread.worst_decile,
    }


def _defined(values: Mapping[str, float]) -> dict[str, float | None]:
    """Replace undefined metrics by None; a loss of NaN stays, because it says that training diverged."""
    return {name: None if isnan(value) and name != "loss" else value for name, value in values.items()}
