"""Pruning: a trial is stopped by the mean of its runs against the median of those that ended."""

from __future__ import annotations

import optuna
import pytest

from fedreuse.core.events import Evaluated, Stop
from fedreuse.studies.tuning.pruning import Pruning, TrialListener


@pytest.fixture
def study() -> optuna.Study:
    study = optuna.create_study(direction="maximize")
    for score in (0.5, 0.6, 0.7, 0.6, 0.5):  # the median is 0.6
        trial = study.ask()
        trial.report(score, 1)
        study.tell(trial, score)
    study.ask()
    return study


def heard(study: optuna.Study, *scores: float) -> list[Stop | None]:
    shared = Pruning(study).of_trial(5, len(scores))
    runs = [TrialListener(shared, f"run {at}") for at in range(len(scores))]
    return [run.evaluated(Evaluated(1, {"validation_score": score})) for run, score in zip(runs, scores, strict=True)]


def test_the_mean_of_all_runs_decides_when_the_last_one_has_come_so_far(study: optuna.Study) -> None:
    first, second = heard(study, 0.4, 0.9)
    assert (first, second) == (None, None)  # 0.4 alone would be below the median; the mean, 0.65, is not
    first, second = heard(study, 0.9, 0.1)
    assert first is None
    assert second == Stop("below the median of earlier trials")


def test_stored_rounds_count_when_a_run_goes_on(study: optuna.Study) -> None:
    shared = Pruning(study).of_trial(5, 1)
    TrialListener(shared, "run").add_rounds(
        [{"round": 1, "validation_score": 0.1}, {"round": 2, "validation_score": None}]
    )
    assert shared.is_over
