"""The paper's figures: published numbers as they stand, runs beside them where there are some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.paper.protocol import MATRIX, TRAJECTORIES, Suite
from fedreuse.lab.paper.section import paper_comparison
from fedreuse.report.page.shown import Shown
from fedreuse.report.results import Result, read_run
from tests.report.runs import write_run


def _run(place: Path, method: str, seed: int, score: float, **task: float) -> Result:
    config = {
        "task": {"name": "mnist", "metric": {"name": "accuracy"}, **task}, "network": {"name": "cnn"},
        "method": {"name": method}, "uplink": {"update": {"name": "top_k", "ratio": 0.2}}, "rounds": {"count": 2},
    }  # fmt: skip
    return read_run(write_run(place, seed=seed, test_score=score, config=config))


def _suite(name: str, runs: list[Result]) -> Suite:
    configs: list[Mapping[str, Any]] = [one.config for one in runs if one.seed == 1]
    return Suite(name, tuple(configs))


@pytest.mark.slow
def test_published_points_and_runs_beside_them(tmp_path: Path) -> None:
    methods, seeds = ("fedavg", "dg_fedreuse"), ((1, 0.8), (2, 0.9))
    runs = [_run(tmp_path / f"{one}{seed}", one, seed, score) for one in methods for seed, score in seeds]
    curves = [_run(tmp_path / f"{one}-curve", one, 1, 0.7, validation=0.2) for one in methods]
    odd = _run(tmp_path / "odd", "fedavg", 3, 0.1, limit=100)
    suites = [_suite(MATRIX, runs), _suite(TRAJECTORIES, curves)]
    section = paper_comparison(Shown((tmp_path,), (*runs, *curves, odd), ()), suites)
    figures = {figure.key: figure.data for figure in section.figures}
    assert list(figures) == ["paper_top_k", "paper_accuracy", "paper_convergence", "paper_decomposition"]
    assert len(section.tables) == 9
    assert [note.split(":")[0] for note in section.notes] == ["left out", "only in the figure of learning curves"]
    series = {(one["name"], one["side"]): one for one in figures["paper_accuracy"]["series"]}
    theirs, ours = series["DG-FedReuse", "paper"], series["DG-FedReuse", "runs"]
    assert (theirs["labels"][0], theirs["x"][0], theirs["y"][0], theirs["ey"][0]) == ("MNIST", 84.32, 99.13, 0.07)
    assert (ours["labels"], ours["x"], ours["y"]) == (["MNIST"], [81], [85])
    assert ("FedAdam", "paper") not in series, "what neither has is left out"
    assert figures["paper_top_k"]["series"][0]["y"][5] == 98.0003
    line = figures["paper_convergence"]["series"][0]
    assert (line["x"], line["y"], line["band"]) == ([1, 2], [40, 60], [[40, 60], [40, 60]])
    bars = {(one["name"], one["side"]): one for one in figures["paper_decomposition"]["series"]}
    assert bars["DG reuse only", "paper"]["y"] == [32.43, 32.83, 35.73, 34.6, 36.99, 37.28]
    assert ("DG reuse only", "runs") not in bars


def test_without_a_run_of_a_figure_the_published_numbers_stand_alone(tmp_path: Path) -> None:
    run = replace(_run(tmp_path / "a", "fedavg", 1, 0.8), savings={})
    section = paper_comparison(Shown((tmp_path,), (run,), ()), [_suite(MATRIX, [run])])
    assert [figure.key for figure in section.figures] == ["paper_top_k", "paper_accuracy", "paper_decomposition"]
    sides = {one["side"] for figure in section.figures for one in figure.data["series"] if one["x"]}
    assert sides == {"paper"}


def test_without_a_run_of_the_paper_there_is_no_section(tmp_path: Path) -> None:
    run = _run(tmp_path / "a", "fedavg", 1, 0.8)
    with pytest.raises(RunDirectoryError, match="no complete run of the paper's protocol"):
        paper_comparison(
            Shown((tmp_path,), (replace(run, config={**run.config, "test": {}}),), ()), [Suite(MATRIX, ())]
        )
