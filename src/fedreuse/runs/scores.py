"""How good a run's model is: on validation examples, at every client with its own model, once on the test split."""

from __future__ import annotations

from functools import reduce
from math import isnan
from typing import TYPE_CHECKING, Any

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import RunError
from fedreuse.core.metrics import Metrics
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
    from fedreuse.runs.live import LiveRun

__all__ = ["EarlyStopping", "Scores"]


class EarlyStopping:
    """Counts evaluations in a row that were no better than the best one before; `best_round` is that one."""

    def __init__(self, patience: int | None, earlier: list[dict[str, Any]]) -> None:
        """`earlier` are the rows of rounds before this start."""
        self._patience = patience
        self._best, self._stale = float("-inf"), 0
        self.best_round = 0
        for row in earlier:
            self.note(row)

    def note(self, row: dict[str, Any]) -> None:
        """Take a round's row into account."""
        score = row["validation_score"]
        if score is not None:
            self._stale = 0 if score > self._best else self._stale + 1
            self.best_round = row.get("round", 0) if score > self._best else self.best_round
            self._best = max(self._best, score)

    @property
    def is_due(self) -> bool:
        """Whether the run should end here."""
        return self._patience is not None and self._stale >= self._patience


class Scores:
    """Evaluates a live run; `executor` holds the validation examples, `evaluator` reaches every client."""

    def __init__(self, live: LiveRun, executor: RunExecutor, evaluator: RunExecutor) -> None:
        """Clients with models of their own get their share of an official validation split."""
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
        """The scores of a round, by the names of their columns; None where it is not evaluated, or has none."""
        evaluation = self._validate(self._live.model, number)
        found = {} if evaluation is None else _told(self._scoring.read(evaluation))
        row = {f"validation_{name}": found.get(name) for name in ("score", "loss", *self._scoring.others)}
        if self._is_at_home:
            row |= _spread_columns(None if evaluation is None else self._spread)
        if self._is_personal:
            row |= self._personal_columns(None if evaluation is None else self._ask_everybody(number))
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
            return self._validate_there(number)
        return self._executor.evaluate(model, self._federation.num_validation)

    def _validate_there(self, number: int) -> Metrics | None:
        """Every client on what it holds out; examples count alike, whoever has them."""
        answers = self._answers(number, "received", "validation")
        self._spread = Spread.of(answers, self._scoring.read)
        told = {client: found for client, found in answers.items() if found.examples}
        scores = ", ".join(f"{client} {self._scoring.read(found)['score']:.4f}" for client, found in told.items())
        self._live.directory.log(f"round {number}: validation by client: {scores or 'nobody has examples'}")
        return reduce(Metrics.__add__, told.values()) if told else None

    def test(self, model: Model) -> dict[str, Any]:
        """The one look at the test split; after a crash right after it, the same look at the same model counts once."""
        directory = self._live.directory
        config, digest = self._federation.config, digest_of_model(model)
        opening = self._federation.prepared.test.open(
            directory.path / RECORD_FILE,
            digest,
            lambda examples: note_opening(directory.path, config.to_plain(), config.run_id, examples, digest),
        )
        if opening.result is None:
            opening.record({**self._test_here(model, opening.split), **self._test_there(opening.split)})
        elif self._is_personal:
            self._live.ledger.rows += self._live.checkpoints.read_final_rows()
        assert opening.result is not None
        return opening.result

    def _test_here(self, model: Model, split: Split) -> dict[str, Any]:
        """The server's own look."""
        if not len(split):  # the clients have the examples
            return {"score": None, "loss": None, "examples": 0}
        result = self._federation.trainer.evaluate(model, split)
        values = _told(self._scoring.read(result))
        others = {"metrics": {name: values[name] for name in self._scoring.others}} if self._scoring.others else {}
        found = {"score": values["score"], "loss": values["loss"], "examples": result.examples, **others}
        reached = success_rate(self._federation, model, split)
        return found if reached is None else {**found, "attack_success": reached}

    def _test_there(self, split: Split) -> dict[str, Any]:
        """What clients find: each with its own model, or, where data stay at home, all with the server's."""
        if self._is_personal:
            return {"personal": self._test_everybody(split)}
        if not self._is_at_home:
            return {}
        seen = len(self._live.ledger.rows)
        spread = self._ask_everybody(self._live.round_number, "received", "test")
        self._live.checkpoints.write_final_rows(self._live.ledger.rows[seen:])
        if spread is None:
            return {}
        here = {} if len(split) else {"score": spread.score, "loss": spread.loss, "examples": spread.examples}
        return {**here, "clients": spread.to_plain()}

    def _test_everybody(self, split: Split) -> dict[str, Any]:
        """Every client on its own share of the test split: with its own model, and the controls beside it.

        The controls are the global model as it is, and the global model after the client's local epochs.
        """
        if not self._is_at_home:
            self._federation.deal("test", split)
        number, seen = self._live.round_number, len(self._live.ledger.rows)
        looks: dict[str, WhichModel] = {"own": "own", "global": "received", "fine_tuned": "fine_tuned"}
        spreads = {name: self._ask_everybody(number, which, "test") for name, which in looks.items()}
        self._live.checkpoints.write_final_rows(self._live.ledger.rows[seen:])
        return {name: None if spread is None else spread.to_plain() for name, spread in spreads.items()}

    def _ask_everybody(self, number: int, which: WhichModel = "own", split: SplitName = "validation") -> Spread | None:
        return Spread.of(self._answers(number, which, split), self._scoring.read)

    def _answers(self, number: int, which: WhichModel, split: SplitName) -> dict[int, Metrics]:
        live, federation = self._live, self._federation
        everybody = Cohort(number, tuple(range(len(federation.population))), federation.config.seed)
        question = Question(everybody, which, split)
        return evaluate_clients(
            federation.method, live.record, question, self._evaluator, live.ledger, federation.schema
        )

    def _personal_columns(self, spread: Spread | None) -> dict[str, float | None]:
        """How clients fare with their own models on their own validation examples."""
        found = {} if spread is None else _told(spread.others)
        others = {f"personal_validation_{name}": found.get(name) for name in self._scoring.others}
        return {
            "personal_validation_score": None if spread is None else spread.score,
            "personal_validation_mean": None if spread is None else spread.mean_score,
            "personal_validation_worst_decile": None if spread is None else spread.worst_decile,
            **others,
        }


def _spread_columns(spread: Spread | None) -> dict[str, float | None]:
    """How one model fares with the clients who keep their data at home."""
    return {
        "client_validation_mean": None if spread is None else spread.mean_score,
        "client_validation_worst_decile": None if spread is None else spread.worst_decile,
    }


def _told(values: Mapping[str, float]) -> dict[str, float | None]:
    """None where a metric is undefined; a loss that is no number is a fact, and stays."""
    return {name: None if isnan(value) and name != "loss" else value for name, value in values.items()}
