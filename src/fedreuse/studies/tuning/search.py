"""Execution of a search: Optuna proposes trials in batches; their runs keep the test split sealed.

The settings of a trial depend only on the space, its number and the batches before it. A search that was killed
therefore continues with the same trials, on any number of cores.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import TrialState

from fedreuse.core.errors import RunError
from fedreuse.core.metrics import score_of
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from fedreuse.studies.side_by_side import RunJob, run_side_by_side
from fedreuse.studies.tuning.judging import judge
from fedreuse.studies.tuning.pruning import Pruning, TrialListener
from fedreuse.studies.tuning.rules import Trial
from fedreuse.studies.tuning.space_record import RUNS_FOLDER, register

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.studies.tuning.space import Space

__all__ = ["search"]

TRIALS_FILE = "trials.journal"
_STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}


def search(space: Space, out: Path, jobs: int = 1, say: Callable[[str], object] = str) -> list[Trial]:
    """Run the remaining trials, and return all in the order of their numbers.

    Args:
        space: The search space.
        out: The folder of the search.
        jobs: Number of simultaneous runs, one core each, at least 1; trials do not depend on it.
        say: Function that receives a sentence about the end of each trial.

    Raises:
        RunDirectoryError: The folder belongs to another space, or another process searches there.
    """
    folder = RunDirectory(out)
    folder.lock()
    try:
        register(space, out)
        study = _study(space, out / TRIALS_FILE)
        while True:
            batch = _ask(space, study)
            if not batch:
                return [_read(trial) for trial in study.get_trials(deepcopy=False)]
            _play(space, study, batch, out, jobs)
            for trial in batch:
                ended = _read(study.get_trials(deepcopy=False)[trial.number])
                pairs = zip(space.objectives, ended.values, strict=False)  # a failed trial has no values
                values = "".join(f", {measure.metric} {value:.6g}" for measure, value in pairs)
                why = f": {ended.error}" if ended.error else ""
                say(f"trial {trial.number} ({trial.number + 1} of {space.size}) {ended.state}{values}{why}")
    finally:
        folder.release()


def _study(space: Space, path: Path) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if path.exists():  # a crash may have torn the last line
        content = path.read_bytes()
        os.truncate(path, content.rfind(b"\n") + 1)
    for left in path.parent.glob(f"{path.name}.lock*"):
        left.unlink()  # of a process that was killed; we hold the lock of the folder
    storage = JournalStorage(JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path))))
    directions = [measure.goal for measure in space.objectives]
    return optuna.create_study(storage=storage, study_name=space.name, directions=directions, load_if_exists=True)


def _ask(space: Space, study: optuna.Study) -> list[optuna.Trial]:
    """Return the unfinished trials of the current batch, which an earlier process may have begun."""
    known = study.get_trials(deepcopy=False)
    ended = sum(trial.state.is_finished() for trial in known)
    first = min(trial.number for trial in known if not trial.state.is_finished()) if ended < len(known) else ended
    first -= first % space.batch
    numbers = range(first, min(first + space.batch, space.size))
    batch = []
    for number in numbers:
        if number < len(known) and known[number].state.is_finished():
            continue
        study.sampler = _sampler(space, number)
        grid = space.grid() if space.sampler == "grid" else []
        if number >= len(known) and grid:
            study.enqueue_trial(grid[number])
        waits = number >= len(known) or known[number].state == TrialState.WAITING
        trial = study.ask() if waits else optuna.Trial(study, known[number]._trial_id)
        chosen: dict[str, Any] = {}
        for dimension in space.dimensions:
            study.sampler = _sampler(space, number, dimension.key)
            chosen[dimension.name] = dimension.suggest(trial, chosen)
        batch.append(trial)
    return batch


def _sampler(space: Space, number: int, key: str = "") -> optuna.samplers.BaseSampler:
    """Return a sampler seeded by the space, the trial and the dimension, so that a resumed search draws the same."""
    seed = int.from_bytes(sha256(f"{space.digest} {number} {key}".encode()).digest()[:4], "little")
    if space.sampler == "tpe":
        return optuna.samplers.TPESampler(seed=seed)
    if space.sampler == "nsga2":
        return optuna.samplers.NSGAIISampler(seed=seed)
    return optuna.samplers.RandomSampler(seed=seed)


def _play(space: Space, study: optuna.Study, batch: list[optuna.Trial], out: Path, jobs: int) -> None:
    """Run a batch, then report its trials to Optuna in their order."""
    pruning = Pruning(study) if space.prune == "median" else None
    planned = {trial.number: space.runs(trial.params) for trial in batch}
    waiting: dict[str, tuple[RunJob, TrialListener | None]] = {}
    for number, cells in planned.items():
        runs = list(chain.from_iterable(cells.values()))
        shared = None if pruning is None else pruning.of_trial(number, len(runs))
        for config in runs:
            directory = _directory(out, config)
            listener = None if shared is None else TrialListener(shared, config.run_id)
            if directory.is_complete and listener is not None:
                listener.add_rounds(directory.metrics())
            elif not directory.is_complete:
                waiting.setdefault(config.run_id, (RunJob(len(waiting), config, directory), listener))
    errors = _run(waiting, jobs)
    for trial in batch:
        _report(space, study, trial, planned[trial.number], out, errors)


def _run(waiting: Mapping[str, tuple[RunJob, TrialListener | None]], jobs: int) -> dict[str, str]:
    """Run the incomplete runs, and return the errors of failed ones by run id."""
    tasks = [task for task, _ in waiting.values()]
    if jobs > 1 and len(tasks) > 1:
        ended = run_side_by_side(tasks, jobs, lambda task: waiting[task.config.run_id][1])
        return {task.config.run_id: error for task, error in ended if error}
    errors = {}
    for task, listener in waiting.values():
        try:
            run(task.config, task.directory.path, resume=True, listeners=[listener] if listener else [])
        except RunError as error:
            errors[task.config.run_id] = str(error)
    return errors


def _report(
    space: Space,
    study: optuna.Study,
    trial: optuna.Trial,
    cells: Mapping[str, list[RunConfig]],
    out: Path,
    errors: Mapping[str, str],
) -> None:
    runs = {cell: [_directory(out, config) for config in configs] for cell, configs in cells.items()}
    flat = list(chain.from_iterable(runs.values()))
    trial.set_user_attr("runs", [run.path.name for run in flat])
    failed = [errors[run.path.name] for run in flat if run.path.name in errors]
    if failed:
        trial.set_user_attr("error", failed[0])
        study.tell(trial, state=TrialState.FAIL)
        return
    if not all(run.is_complete for run in flat):
        study.tell(trial, state=TrialState.PRUNED)
        return
    judgement = judge(space, runs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # after a kill at this point, some are set already, to the same values
        for number, score in _scores(flat).items() if space.prune == "median" else ():
            trial.report(score, number)
        for at, violation in enumerate(judgement.excess):
            trial.set_constraint(str(at), violation)
    trial.set_user_attr("excess", list(judgement.excess))
    trial.set_user_attr("cells", judgement.cells)
    study.tell(trial, list(judgement.values))


def _scores(runs: list[RunDirectory]) -> dict[int, float]:
    """Return the mean validation score of a trial's runs by round."""
    by_round: dict[int, list[float]] = {}
    for run_ in runs:
        for row in run_.metrics():
            if (score := score_of(row)) is not None:
                by_round.setdefault(row["round"], []).append(score)
    return {number: fmean(scores) for number, scores in by_round.items() if len(scores) == len(runs)}


def _directory(out: Path, config: RunConfig) -> RunDirectory:
    return RunDirectory(out / RUNS_FOLDER / config.run_id)


def _read(trial: optuna.trial.FrozenTrial) -> Trial:
    known = trial.user_attrs
    return Trial(
        trial.number,
        trial.params,
        _STATES.get(trial.state, "running"),
        tuple(trial.values or ()) if trial.state == TrialState.COMPLETE else (),
        tuple(known.get("excess", ())),
        known.get("cells"),
        tuple(known.get("runs", ())),
        known.get("error", ""),
    )
