"""One run from its configuration to its directory, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from fedreuse.core.errors import RunError
from fedreuse.engine.evaluation import start_evaluator
from fedreuse.runs.assembly import assemble
from fedreuse.runs.claim import check_ours, check_same, claim
from fedreuse.runs.directory import RunDirectory
from fedreuse.runs.facts import write_facts
from fedreuse.runs.live import LiveRun
from fedreuse.runs.schedule import load_or_freeze
from fedreuse.runs.scores import EarlyStopping, Scores
from fedreuse.runs.summary import arrays_of, round_row, summarise

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.engine.executors.executor import ExecutorConfig, RunExecutor
    from fedreuse.runs.config import RunConfig
    from fedreuse.runs.schedule import Schedule

__all__ = ["Observer", "run"]


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

    Args:
        config: What to run.
        out: The run directory; None stands for `runs/` and the run's own name.
        resume: Go on with a run that was interrupted; a complete one is returned as it is.
        observer: Is told when the run starts and after each round.
        executor: Stands in the place of the configured one, for clients that live elsewhere.

    Returns:
        The run directory, complete.

    Raises:
        RunDirectoryError: If the directory is in use or holds another run.
        DataError: If the dataset is absent or damaged.
        RunError: If the run cannot go on: training diverged, the disk is full, workers die. What was committed is safe.

    Example:
        >>> from fedreuse import load, run
        >>> small = {"task": {"name": "digits", "clients": 4, "limit": 200, "partition": "iid"}, "network": "mlp"}
        >>> config = load(small, ["rounds={count: 2, cohort: 2}", "local.epochs=1"])
        >>> directory = run(config, "first")
        >>> directory.is_complete, sorted(directory.summary["events"])[:1]
        (True, ['fresh'])
    """
    directory = RunDirectory(Path(out) if out is not None else Path("runs") / config.label)
    if resume and directory.is_complete:
        check_same(config, directory)
        return directory
    check_ours(directory.path)
    with ExitStack() as stack:
        directory.lock()
        stack.callback(directory.release)
        try:
            claim(directory, config, resume)
            return _play(config, directory, observer, executor, stack)
        except OSError as error:
            raise RunError(
                f"{directory.path}: {error}; what is already written is safe. Mend that (often the disk is full), "
                "then go on with --resume"
            ) from error


def _play(
    config: RunConfig,
    directory: RunDirectory,
    observer: Observer | None,
    elsewhere: ExecutorConfig | None,
    stack: ExitStack,
) -> RunDirectory:
    """Every stage in its order; whatever is started is ended by the stack."""
    federation = assemble(config)
    if config.rounds.patience is not None and not federation.prepared.has_validation:
        raise RunError("rounds.patience needs validation examples, but every client is too small to hold any out")
    schedule = _freeze(config, directory)
    write_facts(federation, schedule, directory)
    live = LiveRun(federation, directory)
    site = live.site
    executor = stack.enter_context(closing((elsewhere or config.executor).start(site)))
    live.ledger.meter = executor.meter
    scores = Scores(live, executor, start_evaluator(site) if elsewhere is None else executor)
    rounds = _Rounds(live, executor, scores, schedule)
    if observer is not None:
        observer.started(config, directory, live.safe_round + 1)
    directory.log(f"rounds {live.safe_round + 1} to {config.rounds.count}")
    while not rounds.are_over:
        row = rounds.next()
        if observer is not None:
            observer.round_done(row)
    directory.finish(summarise(live, scores.test()), arrays_of(live.model))
    return directory


class _Rounds:
    """The rounds of a run that are still to come."""

    def __init__(self, live: LiveRun, executor: RunExecutor, scores: Scores, schedule: Schedule) -> None:
        self._live, self._executor, self._scores, self._schedule = live, executor, scores, schedule
        self._config = live.federation.config
        self._number = live.safe_round
        self._stopping = EarlyStopping(self._config.rounds.patience, live.directory.journal.rows("metrics"))

    @property
    def are_over(self) -> bool:
        return self._number >= self._config.rounds.count or self._stopping.is_due

    def next(self) -> dict[str, Any]:
        """One round: the conversation, its measures, a checkpoint if it is time for one."""
        began, live = perf_counter(), self._live
        self._number += 1
        seen = live.seen
        live.converse(self._cohort(), self._executor)
        scores = self._scores.after_round(self._number)
        row = round_row(live, self._number, seen, scores, began)
        live.note(row)
        self._stopping.note(row)
        if self._number % self._config.checkpoint_every == 0 or self.are_over:
            live.checkpoint(self._number)
        live.directory.log(_line(row))
        return row

    def _cohort(self) -> Cohort:
        needs, lr_schedule = self._config.method.needs, self._config.local.lr_schedule
        cohort = self._schedule.cohort(self._number, needs.look_ahead)
        lr_factor = lr_schedule.factor(self._number)
        return replace(cohort, lr_factor=lr_factor, population=self._live.federation.population)


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


def _line(row: Mapping[str, Any]) -> str:
    score = "" if row["validation_score"] is None else f" validation {row['validation_score']:.4f}"
    return f"round {row['round']}:{score} fresh {row['fresh']} reused {row['reused']} lost {row['lost']}"
