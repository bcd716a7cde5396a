"""The outcome of a search: files with the rule, every trial and the choice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.config.run_config import load
from fedreuse.core.errors import RunError
from fedreuse.studies.tuning.outcome import OUTCOME_FILE, conclude
from fedreuse.studies.tuning.rules import Trial
from fedreuse.studies.tuning.space import load_space

SPACE = Path(__file__).parents[3] / "configs" / "tune" / "digits" / "fedprox.yaml"


def test_the_choice_is_a_configuration_that_runs(tmp_path: Path) -> None:
    space = load_space(SPACE)
    trials = [
        Trial(at, {"method.mu": mu}, "complete", (score,)) for at, (mu, score) in enumerate([(0.0, 0.5), (0.01, 0.6)])
    ]
    outcome = conclude(space, trials, tmp_path)
    assert [trial.number for trial in outcome.chosen] == [1]
    frozen = load(outcome.configurations[0])
    assert (frozen.to_plain()["method"], frozen.seed, frozen.development_seeds) == (
        load(SPACE.parent / "base.yaml", ["method={name: fedprox, mu: 0.01}"]).to_plain()["method"], 101, (42,),
    )  # fmt: skip
    told = json.loads((tmp_path / OUTCOME_FILE).read_text())
    assert (told["rule"]["name"], told["chosen"], len(told["trials"])) == ("best", [1], 2)


def test_trials_are_written_though_none_may_be_chosen(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no trial can be chosen"):
        conclude(load_space(SPACE), [Trial(0, {"method.mu": 0.0}, "failed", error="why")], tmp_path)
    assert json.loads((tmp_path / OUTCOME_FILE).read_text())["trials"][0]["error"] == "why"
