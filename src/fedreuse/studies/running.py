"""A study at work: what is incomplete runs, one after another on all cores, or side by side on one core each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from fedreuse.config.run_config import RunConfig
from fedreuse.core.errors import ConfigError, RunDirectoryError, RunError
from fedreuse.engine.executors.pool import Pool
from fedreuse.engine.executors.serial import Serial
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from fedreuse.store.manifest import forget_export
from fedreuse.store.study_file import PLAN_FILE, read_study, registered_plans
from fedreuse.studies.side_by_side import RunJob, fits_one_core, pays, run_side_by_side

if TYPE_CHECKING:
    from fedreuse.core.listener import Listener
    from fedreuse.studies.study import Study, StudyRun

__all__ = ["Outcome", "Runner", "require_own", "run_study"]

_SHORT_SECONDS = 5.0
Watch = Callable[[int, "StudyRun"], "Listener | None"]
Runner = Callable[[RunConfig, Path, "Listener | None"], RunDirectory]
"""Runs a configuration into a directory, or goes on with it."""


@dataclass(frozen=True)
class Outcome:
    """What became of one run of a study, by its number; `error` says why it failed."""

    number: int
    run: StudyRun
    directory: RunDirectory
    was_complete: bool = False
    error: str = ""


def run_study(
    study: Study,
    out: str | Path,
    watch: Watch = lambda *_: None,
    jobs: int | None = None,
    say: Callable[[str], object] = str,
    runner: Runner | None = None,
) -> Iterator[Outcome]:
    """Run what is incomplete and yield every run as it ends; a run that fails does not stop the others.

    Args:
        study: What to run.
        out: The folder of the study, in which every run has a directory.
        watch: Called with a run's number and the run; returns who watches it, or None.
        jobs: Runs at a time; None measures the first one and chooses what ends sooner. The results are the same.
        say: Is told in a sentence how the runs use the cores.
        runner: Runs a configuration in the place of the simulation (on real nodes); runs then go one after another.

    The plan of a study must be registered in the folder first (`fedreuse.lab.plans.registration`). Complete runs stay
    as they are, those of an export too: a copy of a partial export is a study that goes on. A study may have got more
    runs (other seeds, other labels) since its folder was begun; it may not have lost one that is there.

    Yields:
        The outcome of each run: its number, its directory, and the error if it failed.

    Raises:
        ConfigError: If the study has a plan that is not registered in the folder.
        RunDirectoryError: If the folder cannot be written, or belongs to another plan or study.

    Example:
        >>> from pathlib import Path
        >>> from fedreuse import load_study, run_study
        >>> _ = Path("two.yaml").write_text('''
        ... base:
        ...   task: {name: digits, clients: 4, limit: 200, partition: iid}
        ...   network: mlp
        ...   rounds: {count: 1, cohort: 2}
        ...   local: {epochs: 1}
        ... axes: {seed: [101, 202]}
        ... ''')
        >>> [(outcome.number, outcome.error) for outcome in run_study(load_study("two.yaml"), "two", jobs=1)]
        [(1, ''), (2, '')]
    """
    place = Path(out)
    require_own(study, place)
    if study.plan is not None and not registered_plans(place):
        raise ConfigError(
            f"study {study.name} has a plan that is not registered in {place}, and it must be before the first run: "
            "use `fedreuse lab confirm`, or call fedreuse.lab.plans.registration.register_plan(study, out) first"
        )
    study.write(place)
    waiting = []
    for number, planned in enumerate(study.runs, start=1):
        directory = RunDirectory(place / planned.folder)
        if directory.is_complete:
            run(planned.config, directory.path, resume=True)  # looks whether it is the same configuration
            yield Outcome(number, planned, directory, was_complete=True)
        else:
            waiting.append(RunJob(number, planned.config, directory))
    if waiting:
        forget_export(place)
    if runner is None:
        yield from _run_waiting(study, waiting, watch, jobs, say)
    else:
        for task in waiting:
            yield _run_here(task, study, watch, runner)


def require_own(study: Study, place: Path) -> None:
    """Refuse a folder with runs or a plan of another study, whose list of runs this one would replace."""
    plans = registered_plans(place)
    if plans and study.plan is None:
        raise RunDirectoryError(
            f"{place} belongs to {_name_there(place)}, which has a plan ({plans[-1]['digest'][:12]} in "
            f"{place / PLAN_FILE}), and study '{study.name}' has none; choose another `out`"
        )
    if plans:
        return  # `register_plan` compares the plans, and a plan names its runs
    own = {planned.folder for planned in study.runs}
    foreign = [folder for folder in _listed(place) if folder not in own and (place / folder / "config.yaml").exists()]
    if foreign:
        raise RunDirectoryError(
            f"{place} belongs to {_name_there(place)}: {len(foreign)} of the runs there (such as {foreign[0]}) are "
            f"none of study '{study.name}' as it is now, and would no longer be found; choose another `out`, or "
            "move that folder away"
        )


def _listed(place: Path) -> list[str]:
    try:
        return [str(entry["folder"]) for entry in read_study(place)["runs"]]
    except RunDirectoryError:
        return []  # there is none, or what bears its name is no such list: `Study.write` refuses somebody else's file


def _name_there(place: Path) -> str:
    try:
        return f"study '{read_study(place).get('study', '?')}'"
    except RunDirectoryError:
        return "another study"


def _run_waiting(
    study: Study, waiting: list[RunJob], watch: Watch, jobs: int | None, say: Callable[[str], object]
) -> Iterator[Outcome]:
    # a process for a run takes seconds to start, so that short ones are done sooner here
    took = 0.0
    while waiting and jobs is None and took < _SHORT_SECONDS:
        began = monotonic()
        yield _run_here(waiting.pop(0), study, watch)
        took = monotonic() - began
    if not waiting:
        return
    cores = len(os.sched_getaffinity(0))
    count = _num_beside(waiting, cores) if jobs is None else (len(waiting) if jobs > 1 else 0)
    beside, rest = waiting[:count], waiting[count:]
    say(_choice(len(beside), rest, jobs or cores, cores))
    for task, error in run_side_by_side(
        beside, jobs or cores, lambda task: watch(task.number, study.runs[task.number - 1])
    ):
        yield Outcome(task.number, study.runs[task.number - 1], task.directory, error=error)
    for task in rest:
        yield _run_here(task, study, watch)


def _num_beside(waiting: Sequence[RunJob], cores: int) -> int:
    """How many of the next runs go side by side; the last few may end sooner if their rounds are split."""
    if not all(fits_one_core(task.config.executor) for task in waiting):
        return 0
    cohort = min(task.config.rounds.cohort for task in waiting)
    whole = len(waiting) // cores * cores
    return next((count for count in (len(waiting), whole) if pays(count, cores, cohort)), 0)


def _choice(num_beside: int, rest: Sequence[RunJob], num_processes: int, cores: int) -> str:
    """How the runs that are left use the cores."""
    beside = f"{num_beside} runs side by side, {num_processes} at a time on one core each"
    one = f"{len(rest)} {'run' if len(rest) == 1 else 'runs one after another'}{_cores_told(rest, cores)}"
    parts = [text for number, text in ((num_beside, beside), (len(rest), one)) if number]
    return f"to go: {'; then '.join(parts)}"


def _cores_told(jobs: Sequence[RunJob], cores: int) -> str:
    """What each of these runs takes; nothing is said where their executors differ, or are on other machines."""
    if all(isinstance(job.config.executor, Serial) for job in jobs):
        return " on one core"
    return f", rounds split over {cores} cores" if all(isinstance(job.config.executor, Pool) for job in jobs) else ""


def _simulate(config: RunConfig, place: Path, listener: Listener | None) -> RunDirectory:
    return run(config, place, resume=True, listeners=[] if listener is None else [listener])


def _run_here(task: RunJob, study: Study, watch: Watch, runner: Runner = _simulate) -> Outcome:
    planned = study.runs[task.number - 1]
    try:
        directory = runner(task.config, task.directory.path, watch(task.number, planned))
    except RunError as error:
        return Outcome(task.number, planned, task.directory, error=str(error))
    return Outcome(task.number, planned, directory)
