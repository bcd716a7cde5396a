"""A run in memory: the server's record, the ledger, the scores, and the loop over the remaining rounds."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.dense import dense_reference
from fedreuse.accounting.outcomes import count_outcomes
from fedreuse.accounting.work import total_work
from fedreuse.core.collection import long_lived
from fedreuse.core.errors import RunError
from fedreuse.core.events import Evaluated, Finished, RoundDone, Stopped, Warned
from fedreuse.engine.evaluation import start_evaluator
from fedreuse.engine.executors.executor import TooFewReplies, WorkersLost
from fedreuse.engine.rounds import run_round
from fedreuse.runs.checkpoints import Checkpoints
from fedreuse.runs.lag_watch import LagWatch
from fedreuse.runs.scores import EarlyStopping, Scores
from fedreuse.runs.summary import arrays_of, round_row, summarise
from fedreuse.store.openings import RECORD_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.listener import Listeners
    from fedreuse.core.model import Model
    from fedreuse.engine.executors.executor import ExecutorConfig, RunExecutor
    from fedreuse.engine.schedule import Schedule
    from fedreuse.runs.federation import Federation
    from fedreuse.store.directory import RunDirectory

__all__ = ["LiveRun"]


class LiveRun:
    """One run in progress, from its beginning or from its last checkpoint.

    Attributes:
        federation: Data, network and method.
        directory: The run directory, locked by this process.
        checkpoints: The durable side of the run.
        record: State and link ends of the server after the last round.
        store: Records of the clients.
        ledger: Rows of all messages and events so far.
        round_number: Last round that was run; 0 before the first.
        scores: Evaluation of the run; only inside `connected`.
    """

    scores: Scores
    _executor: RunExecutor

    def __init__(
        self, federation: Federation, directory: RunDirectory, schedule: Schedule, secret: bytes | None = None
    ) -> None:
        """Read the last checkpoint, or start anew; `secret` is the server's, for noise that protects real clients."""
        self.federation, self.directory = federation, directory
        self.checkpoints = Checkpoints(federation, directory)
        self.record, self.store, self.ledger = self.checkpoints.restore()
        self.round_number = self.checkpoints.round_number
        self.reference = dense_reference(federation.schema)
        self._config, self._schedule, self._secret = federation.config, schedule, secret
        self._stopping = EarlyStopping(self._config.rounds.patience, self.checkpoints.metrics())
        self._clock = federation.clock(directory.log)
        self._lags = LagWatch(len(federation.population) / self._config.rounds.cohort, self.checkpoints.metrics())
        self._unsaved: list[dict[str, Any]] = []

    @contextmanager
    def connected(self, elsewhere: ExecutorConfig | None = None) -> Iterator[LiveRun]:
        """Start the executor, and stop it at the end.

        Args:
            elsewhere: Executor of clients on other machines, in place of the configured one. It then also evaluates;
                otherwise evaluations run in this process, without faults.
        """
        if elsewhere is not None and self.federation.method.server.is_asynchronous:
            self._clock = None  # replies arrive in real time
        site = self.federation.site(self.store, self.directory.log)
        with closing((elsewhere or self._config.executor).start(site)) as executor, long_lived():
            self._executor, self.ledger.meter = executor, executor.meter
            self.scores = Scores(self, executor, start_evaluator(site) if elsewhere is None else executor)
            yield self

    @property
    def model(self) -> Model:
        """The server's model."""
        return self.federation.method.server.model(self.record.state)

    @property
    def result(self) -> Model:
        """The model that the run returns: the last one, or the best by validation (`keep.model: best`)."""
        return self.model if self._config.keep.model == "last" else self.checkpoints.best_model(self._best_round)

    @property
    def is_over(self) -> bool:
        """True if no round is left, by number or by early stopping."""
        return self.round_number >= self._config.rounds.count or self._stopping.is_due

    @property
    def ledger_size(self) -> tuple[int, int]:
        """Numbers of rows and events in the ledger."""
        return len(self.ledger.rows), len(self.ledger.events)

    def play_round(self, audience: Listeners) -> None:
        """Run the next round: conversation, scores, a checkpoint if one is due, and the listeners' events."""
        began, size, simulated = perf_counter(), self.ledger_size, self.record.seconds
        self.converse()
        if self._secret is not None:  # the noise of a model that leaves the server must never cover another sum
            self.checkpoint()
        self._complete(audience, began, size, simulated)

    def complete_round(self, audience: Listeners) -> None:
        """Evaluate the last durable round if the run ended between its commit and its evaluation."""
        if self.checkpoints.is_open:
            self._complete(audience, perf_counter(), self.checkpoints.closed_size, self.record.seconds)

    def _complete(self, audience: Listeners, began: float, size: tuple[int, int], simulated: float) -> None:
        number = self.round_number
        scores = self.scores.after_round(number)
        row = round_row(self, number, size, scores, began, simulated)
        self._unsaved.append(row)
        self._stopping.note(row)
        rows, events = self.ledger.rows[size[0] :], self.ledger.events[size[1] :]
        # a kept model first: once the checkpoint is durable, the round does not run again
        self.checkpoints.keep_model(number, self.model, self._best_round == number)
        if self._is_checkpoint_due:
            self.checkpoint()
            self.checkpoints.keep_copies(number, self._best_round)
        self.directory.log(_line(row))
        alarms = [*self.ledger.take_alarms(), self._lags.note(row), self._stopping.collapse]
        for reason in filter(None, alarms):
            line = reason if reason.startswith("round ") else f"round {number}: {reason}"
            self.directory.log(f"warning: {line}")
            audience.tell(Warned(number, line))
        measured = {name: score for name, score in scores.items() if score is not None}
        if measured:
            audience.tell(Evaluated(number, measured))
        audience.tell(RoundDone(row, count_outcomes(events), total_work(rows)))

    def converse(self) -> None:
        """Run the conversation of the next round, again while too few clients reply and the executor allows it."""
        cohort, (num_rows, num_events) = self._next_cohort(), self.ledger_size
        method, schema = self.federation.method, self.federation.schema
        while True:
            try:
                self.record = run_round(method, self.record, cohort, self._executor, self.ledger, schema, self._clock)
                break
            except TooFewReplies as few:
                if not few.may_retry:
                    raise
                # exchange numbers of the failed attempt are used up: clients may hold proposals under them
                self.record = replace(self.record, exchange=few.exchange)
            except WorkersLost:  # a fault of the machine: the whole rounds before this one become durable now
                del self.ledger.rows[num_rows:], self.ledger.events[num_events:]
                self._save()
                raise
        self.round_number = cohort.round_number

    def _next_cohort(self) -> Cohort:
        number = self.round_number + 1
        return replace(
            self._schedule.cohort(number, self._config.method.needs.look_ahead),
            lr_factor=self._config.local.lr_schedule.factor(number),
            population=self.federation.population,
            secret=self._secret,
        )

    @property
    def _is_checkpoint_due(self) -> bool:
        is_time = self.round_number % self._config.checkpoint_every == 0
        return is_time or self.round_number in self._config.keep.states or self.is_over

    @property
    def _best_round(self) -> int:
        return self._stopping.best_round

    def checkpoint(self) -> None:
        """Make everything up to the last round durable."""
        self.record = self.checkpoints.write(self.round_number, self.record, self.store, self.ledger, self._unsaved)
        self._unsaved = []

    def _save(self) -> None:
        """Write a checkpoint if rounds wait for one."""
        if self._unsaved:
            self.checkpoint()

    def stop(self, reason: str) -> Stopped:
        """End the run early, so that it can be resumed."""
        self._save()
        stopped = Stopped(self.checkpoints.round_number, reason)
        self.directory.note_stop(stopped)
        return stopped

    def test(self) -> Mapping[str, Any] | None:
        """Evaluate the result on the test split, once; None if the configuration keeps the split sealed.

        Raises:
            RunError: No update ever reached the server, so the model is the initial one.
        """
        if not {event.outcome for event in self.ledger.events} & {"fresh", "reused"}:
            raise RunError(
                f"nothing was trained: no update of any selected client reached the server in {self.round_number} "
                f"rounds ({len(self.ledger.events)} selections); lower faults, raise rounds.cohort, or see "
                "rounds.availability"
            )
        # a seal that was broken before a crash stays broken
        is_sealed = self._config.test == "sealed" and not (self.directory.path / RECORD_FILE).exists()
        return None if is_sealed else self.scores.test(self.result)

    def finish(self, test: Mapping[str, Any] | None) -> Finished:
        """Write the results. Without test scores the split stays sealed, and the journal remains for `unseal`."""
        model, is_best = self.result, self._config.keep.model == "best"
        summary = summarise(self, test, model, self._best_round if is_best else None)
        self.directory.finish(summary, arrays_of(model), is_sealed=test is None)
        return Finished(summary)


def _line(row: Mapping[str, Any]) -> str:
    score = "" if row["validation_score"] is None else f" validation {row['validation_score']:.4f}"
    return f"round {row['round']}:{score} fresh {row['fresh']} reused {row['reused']} lost {row['lost']}"
