"""The paper's figures: published numbers as they stand, runs beside them where there are some."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.report.page.paper import beside_the_paper
from fedreuse.report.page.shown import Shown
from fedreuse.report.results import read_run
from tests.report.runs import write_run


@pytest.mark.slow
def test_published_points_and_runs_beside_them(tmp_path: Path) -> None:
    runs = [
        replace(read_run(write_run(tmp_path / f"{method}{seed}", seed=seed, test_score=score)), method=method,
                dataset="mnist", uplink="top_k 0.2")
        for method in ("fedavg", "dg_fedreuse") for seed, score in ((1, 0.8), (2, 0.9))
    ]  # fmt: skip
    section = beside_the_paper(Shown((tmp_path,), tuple(runs), ()))
    figures = {figure.key: figure.data for figure in section.figures}
    assert list(figures) == ["paper_top_k", "paper_accuracy", "paper_convergence", "paper_decomposition"]
    assert len(section.tables) == 5
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


def test_without_a_run_of_the_paper_the_published_numbers_stand_alone(tmp_path: Path) -> None:
    section = beside_the_paper(Shown((tmp_path,), (read_run(write_run(tmp_path / "a")),), ()))
    assert [figure.key for figure in section.figures] == ["paper_top_k", "paper_accuracy", "paper_decomposition"]
    sides = {one["side"] for figure in section.figures for one in figure.data["series"] if one["x"]}
    assert sides == {"paper"}
