"""What runs keep: the best model, models and states of rounds, checkpoints to go back to."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.events import RoundDone, Stop
from fedreuse.core.listener import Listener
from fedreuse.runs import scores
from fedreuse.runs.keeping import go_back
from fedreuse.runs.launch import run
from fedreuse.runs.unsealing import unseal
from fedreuse.store.directory import RunDirectory
from tests.tiny import results, tiny

KEPT = {"models": [2, 3], "states": [2], "checkpoints": 2}
ROUNDS = {"count": 5, "evaluate_every": 1}


class StopAfter(Listener):
    """Stops a run after a round."""

    def __init__(self, number: int) -> None:
        self.number = number

    def round_done(self, event: RoundDone) -> Stop | None:
        return Stop("enough") if event.round_number == self.number else None


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return run(tiny(rounds=ROUNDS, keep=KEPT, test="sealed"), tmp_path_factory.mktemp("kept") / "run")


@pytest.fixture
def falling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation scores rise to round 2 and fall from there, whatever the models are worth."""
    whole = scores.Scores.after_round

    def after_round(self: scores.Scores, number: int) -> dict[str, Any]:
        return {**whole(self, number), "validation_score": 0.5 - 0.1 * abs(number - 2)}

    monkeypatch.setattr(scores.Scores, "after_round", after_round)


@pytest.mark.slow
def test_models_states_and_the_last_checkpoints_are_files(sealed: RunDirectory) -> None:
    names = {str(file.relative_to(sealed.path)) for name in KEPT for file in (sealed.path / name).iterdir()}
    assert names == {
        "models/round-00002.safetensors", "models/round-00003.safetensors", "states/round-00002.sqlite",
        "checkpoints/round-00004.sqlite", "checkpoints/round-00005.sqlite",
    }  # fmt: skip


@pytest.mark.slow
def test_keeping_changes_no_bit_and_a_kept_model_is_that_of_a_shorter_run(sealed: RunDirectory, tmp_path: Path) -> None:
    short = run(tiny(rounds={**ROUNDS, "count": 3}, test="sealed"), tmp_path / "short")
    kept = load_file(sealed.path / "models" / "round-00003.safetensors")
    assert all(np.array_equal(kept[name], array) for name, array in short.model().items())


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 4])
def test_going_back_ends_in_the_same_bits(sealed: RunDirectory, number: int, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(sealed.path, tmp_path / "copy"))
    go_back(copy, number)
    assert len(RunDirectory.open(copy).metrics()) == number
    again = run(tiny(rounds=ROUNDS, keep=KEPT, test="sealed"), copy, resume=True)
    assert results(again) == results(sealed)


@pytest.mark.slow
def test_where_nobody_can_go_back(sealed: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"round 3 was not kept; .*2, 4, 5"):
        go_back(sealed.path, 3)
    copy = Path(shutil.copytree(sealed.path, tmp_path / "copy"))
    unseal(copy)
    with pytest.raises(RunDirectoryError, match="test split was opened"):
        go_back(copy, 2)


@pytest.mark.slow
@pytest.mark.usefixtures("falling")
def test_stopping_by_validation_returns_the_model_that_was_best(tmp_path: Path) -> None:
    rounds = {**ROUNDS, "patience": 2}
    best = run(tiny(rounds=rounds, keep={"model": "best"}), tmp_path / "best")
    assert (best.summary["rounds"], best.summary["model_round"], best.summary["validation_score"]) == (4, 2, 0.5)
    second = run(tiny(rounds={**ROUNDS, "count": 2}), tmp_path / "second")
    for name in ("model_digest", "test_score"):
        assert best.summary[name] == second.summary[name]
    last = run(tiny(rounds=rounds), tmp_path / "last")
    assert last.summary["model_digest"] != best.summary["model_digest"]


@pytest.mark.slow
@pytest.mark.usefixtures("falling")
def test_the_best_model_survives_a_stop(tmp_path: Path) -> None:
    config = tiny(rounds=ROUNDS, keep={"model": "best"}, checkpoint_every=2)
    whole = run(config, tmp_path / "whole")
    run(config, tmp_path / "halves", listeners=[StopAfter(3)])
    assert results(run(config, tmp_path / "halves", resume=True)) == results(whole)
