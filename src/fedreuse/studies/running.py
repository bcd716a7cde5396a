"""Execution of a study: incomplete runs run one after another on all cores, or side by side on one core each."""

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
"""Function that runs a configuration into a directory, or resumes it."""


@dataclass(frozen=True)
class Outcome:
    """Result of one run of a study; `error` is empty unless it failed."""

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
    """Run the incomplete runs of a study and yield each as it ends; a failure does not stop the others.

    Args:
        study: The study.
        out: The folder of the study, in which every run has a directory.
        watch: Function of a run's number and the run; returns its listener, or None.
        jobs: Number of simultaneous runs, at least 1; None: chosen by the time of the first run. Results are the same.
        say: Function that receives a sentence about the use of the cores.
        runner: Function that runs a configuration in place of the simulation (on real nodes), one run after another.

    The plan of a study must be registered in the folder first (`fedreuse.lab.plans.registration`). Complete runs stay
    as they are, also those of an export: a copy of a partial export can be completed. A study may have gained runs
    (other seeds, other labels) since its folder was made, but must still contain every run there.

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
            run(planned.config, directory.path, resume=True)  # checks that the configuration is the same
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
    """Refuse a folder with runs or a plan of another study, because its list of runs would be replaced."""
    plans = registered_plans(place)
    if plans and study.plan is None:
        raise RunDirectoryError(
            f"{place} belongs to {_stored_name(place)}, which has a plan ({plans[-1]['digest'][:12]} in "
            f"{place / PLAN_FILE}), and study '{study.name}' has none; choose another `out`"
        )
    if plans:
        return  # `register_plan` compares the plans, and a plan names its runs
    own = {planned.folder for planned in study.runs}
    foreign = [folder for folder in _listed(place) if folder not in own and (place / folder / "config.yaml").exists()]
    if foreign:
        raise RunDirectoryError(
            f"{place} belongs to {_stored_name(place)}: {len(foreign)} of the runs there (such as {foreign[0]}) are "
            f"not in study '{study.name}' as it is now, and would no longer be found; choose another `out`, or "
            "move that folder away"
        )


def _listed(place: Path) -> list[str]:
    try:
        return [str(entry["folder"]) for entry in read_study(place)["runs"]]
    except RunDirectoryError:
        return []  # no list, or a foreign file of its name, which `Study.write` refuses


def _stored_name(place: Path) -> str:
    try:
        return f"study '{read_study(place).get('study', '?')}'"
    except RunDirectoryError:
        return "another study"


def _run_waiting(
    study: Study, waiting: list[RunJob], watch: Watch, jobs: int | None, say: Callable[[str], object]
) -> Iterator[Outcome]:
    # a process takes seconds to start, so short runs end sooner in this one
    seconds = 0.0
    while waiting and jobs is None and seconds < _SHORT_SECONDS:
        began = monotonic()
        yield _run_here(waiting.pop(0), study, watch)
        seconds = monotonic() - began
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
    """Return how many of the next runs go side by side; the last few may end sooner split over the cores."""
    if not all(fits_one_core(task.config.executor) for task in waiting):
        return 0
    cohort = min(task.config.rounds.cohort for task in waiting)
    whole = len(waiting) // cores * cores
    return next((count for count in (len(waiting), whole) if pays(count, cores, cohort)), 0)


def _choice(num_beside: int, rest: Sequence[RunJob], num_processes: int, cores: int) -> str:
    """Describe how the remaining runs use the cores."""
    beside = f"{num_beside} runs side by side, {num_processes} at a time on one core each"
    one = f"{len(rest)} {'run' if len(rest) == 1 else 'runs one after another'}{_cores_of(rest, cores)}"
    parts = [text for number, text in ((num_beside, beside), (len(rest), one)) if number]
    return f"to go: {'; then '.join(parts)}"


def _cores_of(jobs: Sequence[RunJob], cores: int) -> str:
    """Describe the cores of each run; empty where executors differ or are on other machines."""
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
