"""Searches at work: the twins of the paper's, killed and resumed to the same trials, side by side, pruned."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.directory import RunDirectory
from fedreuse.store.openings import LEDGER_FILE
from fedreuse.studies.tuning import search as module
from fedreuse.studies.tuning.outcome import conclude
from fedreuse.studies.tuning.search import search
from fedreuse.studies.tuning.space import load_space

TWINS = Path(__file__).parents[3] / "configs" / "tune" / "digits"


class Killed(BaseException):
    """Somebody pulled the plug."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shared", "gate", "fedprox", "top_k", "fedadam"])
def test_the_twin_of_a_search_of_the_paper_ends_in_a_configuration(name: str, tmp_path: Path) -> None:
    space = load_space(TWINS / f"{name}.yaml")
    trials = search(space, tmp_path)
    assert {trial.state for trial in trials} == {"complete"}
    outcome = conclude(space, trials, tmp_path)
    assert len(outcome.configurations) == 1
    runs = [RunDirectory.open(tmp_path / "trials" / run) for trial in trials for run in trial.runs]
    assert all(run.is_sealed for run in runs)
    assert not (tmp_path / LEDGER_FILE).exists()


@pytest.mark.slow
def test_a_search_that_is_killed_goes_on_with_the_same_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = load_space(TWINS / "gate.yaml", ["rounds.count=1", "tune.trials=3"])
    whole = search(space, tmp_path / "whole")
    tell, suggest = optuna.Study.tell, optuna.Trial.suggest_float
    for target, name, original, number in (
        (optuna.Trial, "suggest_float", suggest, 2), (optuna.Study, "tell", tell, 1), (optuna.Study, "tell", tell, 2),
    ):  # fmt: skip
        left = iter(range(number - 1))

        def dying(*words: object, left: object = left, original: object = original, **options: object) -> object:
            if next(left, None) is None:  # type: ignore[call-overload]
                raise Killed
            return original(*words, **options)  # type: ignore[operator]

        with monkeypatch.context() as patch:
            patch.setattr(target, name, dying)
            with pytest.raises(Killed):
                search(space, tmp_path / "killed")
        with (tmp_path / "killed" / "trials.journal").open("a") as file:
            file.write('{"op_code": 4, "wor')  # torn
    assert search(space, tmp_path / "killed") == whole


def _written(folder: Path) -> int:
    """Bytes under a folder; files come and go while they are counted."""
    sizes = 0
    for found in folder.rglob("*"):
        try:
            sizes += found.stat().st_size
        except FileNotFoundError:
            continue
    return sizes


@pytest.mark.long
def test_a_tuner_killed_five_times_ends_with_the_same_trials(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fedreuse", "tune", str(TWINS / "gate.yaml"), "rounds.count=2", "--jobs", "1"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*command, "--out", str(whole)], check=True, capture_output=True)
    kills = 0
    for share in (0.05, 0.25, 0.4, 0.6, 0.85):
        process = subprocess.Popen(
            [*command, "--out", str(killed)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while process.poll() is None and _written(killed) < share * _written(whole):
            time.sleep(0.01)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills == 5
    subprocess.run([*command, "--out", str(killed)], check=True, capture_output=True)
    first, second = (json.loads((folder / "outcome.json").read_text()) for folder in (whole, killed))
    assert first == second
    assert (whole / "chosen.yaml").read_bytes() == (killed / "chosen.yaml").read_bytes()


@pytest.mark.slow
def test_side_by_side_the_trials_are_the_same(tmp_path: Path) -> None:
    space = load_space(TWINS / "gate.yaml", ["rounds.count=1", "tune.trials=2"])
    assert search(space, tmp_path / "two", jobs=2) == search(space, tmp_path / "one")


def test_another_space_is_refused_in_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ask", lambda *_: [])
    search(load_space(TWINS / "gate.yaml"), tmp_path)
    with pytest.raises(RunDirectoryError, match="was begun with another space or rule"):
        search(load_space(TWINS / "gate.yaml", ["tune.trials=9"]), tmp_path)


def test_a_run_that_diverges_is_a_failed_trial(tmp_path: Path) -> None:
    space = load_space(TWINS / "fedprox.yaml", ["rounds.count=1", "local.optimizer.lr=1e30", "local.clip_norm=null"])
    space = replace(space, dimensions=(replace(space.dimensions[0], values=(0.0,)),))
    [trial] = search(space, tmp_path)
    assert (trial.state, trial.values) == ("failed", ())
    assert "training diverged" in trial.error
