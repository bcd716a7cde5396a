"""The plot of a terminal: scores at their places, one mark per variant, nothing where there is nothing to draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fedreuse.cli.plot import MARKS, plot
from fedreuse.report.results import read_run
from tests.report.runs import write_run


def test_the_first_and_last_scores_stand_in_the_corners(tmp_path: Path) -> None:
    result = read_run(write_run(tmp_path / "run", scores=(0.25, 0.75)))
    drawn = plot([replace(result, variant="lean")], 60)
    lines = drawn.plain.splitlines()
    assert lines[0].startswith("    75 % ┤")
    assert lines[0].endswith(MARKS[0]), "the best score, with the most bytes"
    assert lines[11] == f"    25 % ┤{MARKS[0]}{' ' * 49}"
    assert "MB, both ways" in lines[13]
    assert lines[-1].split() == [MARKS[0], "lean"]
    assert max(map(len, lines)) <= 60


def test_one_evaluation_is_no_plot(tmp_path: Path) -> None:
    assert plot([read_run(write_run(tmp_path / "run", scores=(None, 0.6)))], 80) is None
    assert plot([], 80) is None
    assert plot([read_run(write_run(tmp_path / "other", scores=(0.5, 0.6)))], 30) is None
