"""Studies at work: what is complete stays, what failed is told, and every way to use the cores gives the same bits."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import ConfigError, RunDirectoryError, RunError
from fedreuse.engine.executors.pool import Pool
from fedreuse.engine.executors.serial import Serial
from fedreuse.lab.plans.registration import register_plan
from fedreuse.report.results import read_runs
from fedreuse.runs.listeners import Listener, RoundDone, Started
from fedreuse.store.directory import RunDirectory
from fedreuse.store.study_file import PLAN_FILE
from fedreuse.studies import running as module
from fedreuse.studies.running import run_study
from fedreuse.studies.study import Study, StudyRun, expand
from tests.studies.test_study import BASE, METHODS
from tests.tiny import results


@pytest.mark.slow
def test_what_is_incomplete_runs_and_a_report_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = expand({"base": BASE, "axes": {"method": METHODS}}, "s")
    seen: list[tuple[int, str]] = []

    def watch(number: int, planned: StudyRun) -> None:
        seen.append((number, planned.variant))

    real = module.run
    calls: list[str] = []

    def failing(config: Any, place: Path, **options: Any) -> Any:
        calls.append(place.name)
        if not config.uplink:
            raise RunError("the model is no longer finite")
        return real(config, place, **options)

    monkeypatch.setattr(module, "run", failing)
    first, second = run_study(study, tmp_path / "out", watch)
    assert first.error == "the model is no longer finite"
    assert not second.error
    assert not second.was_complete
    monkeypatch.setattr(module, "run", real)
    kept, ran = run_study(study, tmp_path / "out", watch)
    assert [(outcome.number, outcome.was_complete) for outcome in (kept, ran)] == [(2, True), (1, False)]
    assert seen == [(1, "dense FedAvg"), (2, "Top-K"), (1, "dense FedAvg")]
    assert [result.variant for result in read_runs(tmp_path / "out")] == ["dense FedAvg", "Top-K"]
    listed = json.loads((tmp_path / "out" / "study.json").read_text())
    assert [run["run_id"] for run in listed["runs"]] == [run.config.run_id for run in study.runs]


def test_another_runner_may_stand_in_the_place_of_the_simulation(tmp_path: Path) -> None:
    study = expand({"base": {**BASE, "method": "fedavg"}, "axes": {"seed": [1, 2]}}, "seeds")
    asked = []

    def elsewhere(config: Any, place: Path, listener: object) -> Any:
        asked.append((config.seed, place.parent, listener))
        if config.seed == 2:
            raise RunError("no such luck")
        return module.run(config, place)

    first, second = run_study(study, tmp_path, runner=elsewhere)
    assert asked == [(1, tmp_path, None), (2, tmp_path, None)]
    assert (first.was_complete, second.error) == (False, "no such luck")
    assert next(run_study(study, tmp_path, runner=elsewhere)).was_complete
    assert len(asked) == 2  # what is complete is not run again


PLAN = {"contrasts": [{"of": "Top-K", "against": "dense FedAvg"}]}


def small(name: str = "mine", seeds: int = 2, plan: Any = None, **changes: Any) -> Study:
    axes = {"method": METHODS, "seed": list(range(1, seeds + 1))}
    return expand({"base": {**BASE, **changes}, "axes": axes, "plan": plan}, name)


def begin(study: Study, place: Path) -> list[str]:
    """Begin every run of a study without training anything; returns the runs that were begun."""

    def only_begun(config: Any, where: Path, listener: object) -> RunDirectory:
        where.mkdir(exist_ok=True)
        (where / "config.yaml").write_text("begun")
        return RunDirectory(where)

    register_plan(study, place)
    return [outcome.directory.path.name for outcome in run_study(study, place, runner=only_begun)]


def files(place: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in place.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("there", "ours", "said"),
    [
        (small("a", 5, PLAN), small("b"), r"belongs to study 'a', which has a plan \(.*and study 'b' has none"),
        (small("a", 5, PLAN), small("a", 5), "belongs to study 'a', which has a plan"),
        (small("a", 5, PLAN), small("b", 6, PLAN), "another plan"),
        (small("a"), small("b", local={"epochs": 2}), r"study 'a': 4 of the runs there \(such as dense.* study 'b'"),
        (small("a"), small("b", 5, PLAN, local={"epochs": 2}), "4 of the runs there"),
        (small("a", 3), small("a", 2), r"study 'a': 2 of the runs there \(such as dense-fedavg-s3-.* study 'a'"),
    ],
)
def test_the_folder_of_another_study_is_refused_before_anything_runs(
    tmp_path: Path, there: Study, ours: Study, said: str
) -> None:
    begin(there, tmp_path)
    before = files(tmp_path)
    with pytest.raises(RunDirectoryError, match=rf"{said}.*[Cc]hoose another `out`"):
        begin(ours, tmp_path)
    assert files(tmp_path) == before


def test_a_study_goes_on_in_its_folder_with_more_runs_under_another_name_or_with_a_plan(tmp_path: Path) -> None:
    begin(small("a", 2), tmp_path)
    assert len(begin(small("a", 2, executor="serial"), tmp_path)) == 4  # how it runs is not what it runs
    assert len(begin(small("a", 5), tmp_path)) == 10
    assert len(begin(small("renamed", 5), tmp_path)) == 10
    assert len(begin(small("renamed", 5, PLAN), tmp_path)) == 10
    assert (tmp_path / PLAN_FILE).exists()


def test_a_plan_is_registered_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has a plan that is not registered"):
        next(run_study(small("a", 5, PLAN), tmp_path))
    assert files(tmp_path) == {}


def test_runs_that_were_listed_and_never_begun_bind_nobody(tmp_path: Path) -> None:
    small("a").write(tmp_path)
    assert len(begin(small("a", local={"epochs": 2}), tmp_path)) == 4


@pytest.mark.slow
def test_side_by_side_ends_in_the_bits_of_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = expand({"base": BASE, "axes": {"method": METHODS, "seed": [1, 2]}}, "s")
    told: list[str] = []
    rounds: dict[int, list[int]] = {}

    class Watcher(Listener):
        def __init__(self, number: int) -> None:
            self.number = number

        def started(self, event: Started) -> None:
            rounds[self.number] = []

        def round_done(self, event: RoundDone) -> None:
            rounds[self.number].append(event.round_number)

    beside = list(run_study(study, tmp_path / "beside", lambda number, _: Watcher(number), 2, told.append))
    assert sorted(outcome.number for outcome in beside) == [1, 2, 3, 4]
    assert rounds == {number: [1] for number in (1, 2, 3, 4)}
    assert told == ["to go: 4 runs side by side, 2 at a time on one core each"]
    for outcome in run_study(study, tmp_path / "alone", jobs=1):
        assert results(tmp_path / "beside" / outcome.run.folder) == results(outcome.directory)


@pytest.mark.slow
def test_a_process_that_dies_takes_its_run_with_it_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDREUSE_ALLOW", "tests")
    axes = {"seed": [1, 3], "data": {"digits": {}, "none": {"task": {"name": f"{__name__}:Deadly", "clients": 4}}}}
    study = expand({"base": BASE, "axes": axes}, "s")
    outcomes = {outcome.number: outcome for outcome in run_study(replace(study, runs=study.runs[:3]), tmp_path, jobs=2)}
    assert [outcomes[number].error == "" for number in (1, 2, 3)] == [True, False, True]
    assert "its process ended (exit code 9;" in outcomes[2].error


@dataclass(frozen=True)
class Deadly:
    """A dataset that ends the process that reads it."""

    def load(self, folder: Any) -> Any:
        os._exit(9)


def test_the_first_run_is_measured_and_short_ones_stay_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = expand({"base": BASE, "axes": {"seed": [1, 2, 3, 4, 5]}}, "s")
    taken: list[list[int]] = []

    def beside(tasks: Any, num_processes: int, watch: Any) -> Any:
        taken.append([task.number for task in tasks])
        return [(task, "") for task in tasks]

    monkeypatch.setattr(module, "run", lambda *_, **__: None)
    monkeypatch.setattr(module, "run_side_by_side", beside)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    told: list[str] = []
    assert len(list(run_study(study, tmp_path, say=told.append))) == 5
    assert (taken, told) == ([], [])  # nothing takes long
    monkeypatch.setattr(module, "_SHORT_SECONDS", 1e-12)
    assert [outcome.number for outcome in run_study(study, tmp_path, say=told.append)] == [1, 2, 3, 4, 5]
    assert taken == [[2, 3, 4, 5]]
    assert told == ["to go: 4 runs side by side, 2 at a time on one core each"]
    # three are left after the first of four: two side by side, the last on both cores
    told.clear()
    short = replace(study, runs=study.runs[:4])
    list(run_study(short, tmp_path, say=told.append))
    assert told == ["to go: 2 runs side by side, 2 at a time on one core each; then 1 run, rounds split over 2 cores"]
    # who asks for a number of workers gets them, one run after another
    told.clear()
    asked = tuple(replace(run, config=replace(run.config, executor=Pool(2))) for run in study.runs)
    list(run_study(replace(study, runs=asked), tmp_path, say=told.append))
    assert told == ["to go: 4 runs one after another, rounds split over 2 cores"]
    # who asks for one process is told of one core
    told.clear()
    asked = tuple(replace(run, config=replace(run.config, executor=Serial())) for run in study.runs)
    list(run_study(replace(study, runs=asked), tmp_path, jobs=1, say=told.append))
    assert told == ["to go: 5 runs one after another on one core"]
