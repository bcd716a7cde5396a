"""One run from its configuration to its directory, stage by stage."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fedreuse.accounting.outcomes import count_outcomes
from fedreuse.accounting.work import total_work
from fedreuse.config.run_config import RunConfig, load
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.events import Evaluated, Failed, Finished, RoundDone, Started, Stopped
from fedreuse.core.listener import Listener, Listeners
from fedreuse.core.listener import listeners as named_listeners
from fedreuse.engine.evaluation import start_evaluator
from fedreuse.engine.schedule import load_or_freeze
from fedreuse.learning.at_home import at_server, is_at_home
from fedreuse.robustness.privacy import secret_of
from fedreuse.runs.claim import check_ours, check_same, hold
from fedreuse.runs.facts import write_facts
from fedreuse.runs.federation import assemble
from fedreuse.runs.keeping import Keeper
from fedreuse.runs.live import LiveRun
from fedreuse.runs.scores import EarlyStopping, Scores
from fedreuse.runs.summary import arrays_of, round_row, summarise
from fedreuse.store.directory import RunDirectory
from fedreuse.store.openings import RECORD_FILE

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.model import Model
    from fedreuse.core.schema import ModelSchema
    from fedreuse.engine.executors.executor import ExecutorConfig, RunExecutor
    from fedreuse.engine.schedule import Schedule
    from fedreuse.learning.task import PreparedTask

__all__ = ["EXAMPLES_FILE", "Census", "finish", "prepare", "run", "storing"]

EXAMPLES_FILE = "examples.json"
"""In the run directory, where data stay at home: how many training examples each client told at the beginning."""


def run(
    config: RunConfig | str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    *,
    resume: bool = False,
    listeners: Sequence[Listener] = (),
    progress: bool = False,
    executor: ExecutorConfig | None = None,
) -> RunDirectory:
    """Run a configuration to its end, or go on where it stopped; the same bits either way.

    Args:
        config: A configuration, the path of a YAML file, or a mapping as it would stand in one.
        out: The run directory. None: `runs/` and the run's own name.
        resume: Go on with the unfinished run in the directory, and return a complete one as it is. Without it a
            directory that holds a run is refused.
        listeners: Hear the run's events, before those that the configuration names; one of them may stop the run.
        progress: Show a bar on a terminal, lines in a notebook or a file.
        executor: In the place of the configured one: clients that are not played here, but live elsewhere.

    Returns:
        The run directory. Its `state` is `complete`, or `stopped` if a listener asked for that.

    Raises:
        UserError: A mistake in the configuration, the data or the directory; then nothing is left behind.
        RunError: The run could not go on; the rounds before are stored, and `resume=True` goes on from them.

    Example:
        >>> from fedreuse import load, run
        >>> small = {"task": {"name": "digits", "clients": 4, "limit": 200, "partition": "iid"}, "network": "mlp"}
        >>> config = load(small, ["rounds={count: 2, cohort: 2}", "local.epochs=1"])
        >>> directory = run(config, "first")
        >>> directory.is_complete, sorted(directory.summary["events"])[:1]
        (True, ['fresh'])
    """
    config = config if isinstance(config, RunConfig) else load(config)
    for one in listeners:
        if isinstance(one, str | type):
            raise ConfigError(
                f"listeners: a Listener object expected, got {one!r}; those that ship are named in the configuration "
                "(listeners: [csv]), and of a class of your own an object is made first"
            )
    directory = RunDirectory(Path(out) if out is not None else Path("runs") / config.label)
    if resume and directory.is_complete:
        directory.verify()
        check_same(config, directory)
        return directory
    check_ours(directory.path)
    named = [*config.listeners, *([named_listeners.parse("progress", "listeners")] if progress else [])]
    heard = Listeners([*listeners, *(settings.start() for settings in named)], directory.log)
    with ExitStack() as stack:
        stack.enter_context(hold(directory, config, resume))
        stack.enter_context(storing(directory))
        rounds = prepare(config, directory, executor, stack)
        _go(rounds, heard)
    return directory


@contextmanager
def storing(directory: RunDirectory) -> Iterator[None]:
    """Turn an error of the operating system while a run is stored into a RunError that says how to go on."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{directory.path}: {error}; what is already written is safe. Mend that (often the disk is full), "
            "then go on with resume=True"
        ) from error


def prepare(config: RunConfig, directory: RunDirectory, elsewhere: ExecutorConfig | None, stack: ExitStack) -> _Rounds:
    """Every stage before the first round; whatever is started is ended by the stack."""
    _check_seal(config, elsewhere)
    federation = assemble(config, _at_home(config, directory, elsewhere))
    selects = "rounds.patience" if config.rounds.patience is not None else "keep.model: best"
    if (config.rounds.patience is not None or config.keep.model == "best") and not federation.prepared.has_validation:
        raise ConfigError(
            f"{selects} needs validation examples, but every client is too small to hold any out; raise "
            "task.validation, or take fewer clients"
        )
    secret = secret_of(config, directory, elsewhere is not None)
    schedule = _freeze(config, directory, secret)
    write_facts(federation, schedule, directory)
    for note in federation.prepared.data.notes:
        directory.log(f"data: {note}")
    live = LiveRun(federation, directory)
    site = live.site
    executor = stack.enter_context(closing((elsewhere or config.executor).start(site)))
    live.ledger.meter = executor.meter
    scores = Scores(live, executor, start_evaluator(site) if elsewhere is None else executor)
    return _Rounds(live, executor, scores, schedule, secret)


@runtime_checkable
class Census(Protocol):
    """Clients elsewhere who can be asked how many examples they have."""

    def census(self, schema: ModelSchema, num_clients: int, log: Callable[[str], object]) -> list[int]:
        """The training examples of every client; 0 for who is not there."""
        ...


def _at_home(config: RunConfig, directory: RunDirectory, elsewhere: ExecutorConfig | None) -> PreparedTask | None:
    """The server's side of data that stay at home, with the counts that clients told when the run began."""
    if not is_at_home(config.task.dataset):
        return None
    if not isinstance(elsewhere, Census):
        raise ConfigError(
            "task.name: at_home is for deployments, where nodes have the data (`fedreuse deploy`, `supernode --data`); "
            "a simulation needs them here: dataset files reads one folder per client"
        )
    known = directory.path / EXAMPLES_FILE
    if not known.exists():
        schema = assemble(config, at_server(config.task, [0] * config.task.clients)).schema
        directory.write_json(EXAMPLES_FILE, elsewhere.census(schema, config.task.clients, directory.log))
    return at_server(config.task, json.loads(known.read_text()))


def _go(rounds: _Rounds, heard: Listeners) -> None:
    """The rounds that are left and the end, told to everybody who hears."""
    live, config = rounds.live, rounds.live.federation.config
    directory, first = live.directory, live.safe_round + 1
    directory.log(f"rounds {first} to {config.rounds.count}")
    directory.note_stop(None)
    try:
        heard.tell(Started(config, directory, first))
        while not rounds.are_over and heard.stop is None:
            rounds.play_next(heard)
        if heard.stop is not None:
            live.checkpoint_waiting()
            directory.note_stop(Stopped(live.safe_round, heard.stop.reason))
            heard.tell(Stopped(live.safe_round, heard.stop.reason))
            return
        _require_training(live)
        # a seal that was broken before a crash stays broken
        is_sealed = config.test == "sealed" and not (directory.path / RECORD_FILE).exists()
        summary = finish(rounds, None if is_sealed else rounds.scores.test(rounds.result))
    except BaseException as error:
        heard.tell(Failed(error))
        raise
    heard.tell(Finished(summary))


def _require_training(live: LiveRun) -> None:
    """Refuse to call a run complete in which no update ever reached the server: its model is the initial one."""
    outcomes = {event.outcome for event in live.ledger.events}
    if not outcomes & {"fresh", "reused"}:
        raise RunError(
            f"nothing was trained: no update of any selected client reached the server in {live.safe_round} rounds "
            f"({len(live.ledger.events)} selections); lower faults, raise rounds.cohort, or see rounds.availability"
        )


def finish(rounds: _Rounds, test: Mapping[str, Any] | None) -> dict[str, Any]:
    """Write the results; None leaves the test split sealed, and what its opening needs in the journal."""
    live, model = rounds.live, rounds.result
    summary = summarise(live, test, model, rounds.best_round)
    live.directory.finish(summary, arrays_of(model), is_sealed=test is None)
    return summary


def _check_seal(config: RunConfig, elsewhere: ExecutorConfig | None) -> None:
    if config.test == "sealed" and elsewhere is not None and config.method.is_personal:
        raise ConfigError(
            "test: sealed on real nodes, with a method whose clients have models of their own: nobody could open it "
            "later, because those models stay at the nodes; leave test: open, or take a method with one model"
        )
    if is_at_home(config.task.dataset) and (config.test == "sealed" or config.keep.model == "best"):
        raise ConfigError(
            "test: sealed and keep.model: best need examples at the server after the run, but task.name is at_home; "
            "leave test: open (nodes test the last model, once) and keep.model: last"
        )


class _Rounds:
    """The rounds of a run that are still to come."""

    def __init__(
        self, live: LiveRun, executor: RunExecutor, scores: Scores, schedule: Schedule, secret: bytes | None
    ) -> None:
        self.live, self.scores, self._secret = live, scores, secret
        self._executor, self._schedule = executor, schedule
        self._config = live.federation.config
        self._number = live.safe_round
        self._keeper = Keeper(live)
        self._stopping = EarlyStopping(self._config.rounds.patience, live.directory.journal.rows("metrics"))

    @property
    def result(self) -> Model:
        """The model that the run is about: the last one, or the best."""
        return self._keeper.result(self._stopping.best_round)

    @property
    def best_round(self) -> int | None:
        """Where the result comes from, unless it is the last round."""
        return self._stopping.best_round if self._config.keep.model == "best" else None

    @property
    def are_over(self) -> bool:
        return self._number >= self._config.rounds.count or self._stopping.is_due

    def play_next(self, heard: Listeners) -> None:
        """One round: the conversation, its measures, a checkpoint if it is time for one, and word of it."""
        began, live = perf_counter(), self.live
        self._number += 1
        seen = live.seen
        live.converse(self._cohort(), self._executor)
        scores = self.scores.after_round(self._number)
        row = round_row(live, self._number, seen, scores, began)
        live.note(row)
        self._stopping.note(row)
        self._keeper.after_round(self._number, self._stopping.best_round == self._number)
        is_time = self._number % self._config.checkpoint_every == 0 or self._number in self._config.keep.states
        if is_time or self.are_over:
            live.checkpoint(self._number)
            self._keeper.after_checkpoint(self._number, self._stopping.best_round)
        live.directory.log(_line(row))
        found = {name: score for name, score in scores.items() if score is not None}
        if found:
            heard.tell(Evaluated(self._number, found))
        rows, events = live.ledger.rows[seen[0] :], live.ledger.events[seen[1] :]
        heard.tell(RoundDone(row, count_outcomes(events), total_work(rows)))

    def _cohort(self) -> Cohort:
        needs, lr_schedule = self._config.method.needs, self._config.local.lr_schedule
        cohort = self._schedule.cohort(self._number, needs.look_ahead)
        lr_factor = lr_schedule.factor(self._number)
        population = self.live.federation.population
        return replace(cohort, lr_factor=lr_factor, population=population, secret=self._secret)


def _freeze(config: RunConfig, directory: RunDirectory, secret: bytes | None) -> Schedule:
    """The cohorts of all rounds: from the seed or, where there is one, from the server's secret."""
    rounds = config.rounds
    return load_or_freeze(
        directory.path / "schedule.json",
        config.task.clients,
        rounds.count,
        rounds.cohort,
        rounds.availability,
        config.seed,
        secret,
    )


def _line(row: Mapping[str, Any]) -> str:
    score = "" if row["validation_score"] is None else f" validation {row['validation_score']:.4f}"
    return f"round {row['round']}:{score} fresh {row['fresh']} reused {row['reused']} lost {row['lost']}"
