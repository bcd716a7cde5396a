"""A page: all parts, from folders of runs that are complete, half done or not begun."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.report.page.page import page_of
from tests.report.runs import write_run

pytestmark = pytest.mark.slow  # the runs behind it


def test_every_part_is_there(planned: Path) -> None:
    page = page_of([planned], targets=[0.3, 0.5])
    assert [section.title for section in page.sections] == [
        "Answer", "Accuracy and bytes", "Learning curves", "Communication", "Gate decisions", "Statistical tests",
        "Cost", "Runs and code",
    ]  # fmt: skip
    assert page.title == "planned"
    titles = [table.title for table in page.tables]
    assert titles.count("Cost to validation accuracy 30.00 %") == 1, "the plan's target and ours are one"
    assert "Cost to validation accuracy 50.00 %" in titles


def test_a_run_that_goes_on_alone(tmp_path: Path) -> None:
    write_run(tmp_path / "a", is_complete=False)
    page = page_of([tmp_path / "a"], "mine")
    assert page.title == "mine"
    assert [section.key for section in page.sections if section.figures] == ["trajectories", "bytes", "gate"]


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="no run directory"):
        page_of([tmp_path])
