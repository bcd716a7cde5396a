"""What the runs of a trial come to, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.studies.tuning import judging
from fedreuse.studies.tuning.judging import judge
from fedreuse.studies.tuning.measures import Constraint, Measure
from fedreuse.studies.tuning.space import load_space
from tests.report.runs import write_run

SPACE = Path(__file__).parents[3] / "configs" / "tune" / "digits" / "fedprox.yaml"


def test_means_over_runs_and_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "bytes_of", lambda run, boundary, direction: 100 * run.config["seed"])
    runs = [write_run(tmp_path / str(seed), seed=seed, scores=(0.4, score)) for seed, score in ((1, 0.5), (2, 0.75))]
    share = Measure("active_fraction")
    space = replace(load_space(SPACE), objectives=(Measure(), share), constraints=(Constraint(share, at_most=0.7),))
    found = judge(space, {"one": runs[:1], "two": runs[1:]})
    assert found.values == (0.625, 0.75)  # (0.5 + 0.75) / 2; 3 of 4 selections trained
    assert found.excess == (pytest.approx(0.05),)
    assert found.cells == {"one": {"validation": 0.5, "bytes": 100}, "two": {"validation": 0.75, "bytes": 200}}
