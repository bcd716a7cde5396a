"""Trajectories: means and bands over seeds at the rounds that all of them evaluated, and what was spent by then."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from fedreuse.report.gather import gather
from fedreuse.report.page.shown import Shown
from fedreuse.report.page.trajectories import trajectories
from tests.report.runs import write_run

pytestmark = pytest.mark.slow  # the runs behind it


def test_lines_are_means_of_the_runs_own_rows(shown: Shown) -> None:
    section = trajectories(shown, [0.3])
    line = section.figures[0].data["lines"][1]
    histories = [result.history for result in shown.begun[1].results]
    assert line["rounds"] == [1, 2, 3, 4, 5]
    last = [100 * history.metrics[-1]["validation_score"] for history in histories]
    assert line["mean"][-1] == pytest.approx(fmean(last), rel=1e-5)
    assert line["band"][0][-1] < line["mean"][-1] < line["band"][1][-1]
    spent = [history.traffic["messages"].up.sum() / 1e6 for history in histories]
    assert line["bytes"]["messages/up"][-1] == pytest.approx(fmean(spent), rel=1e-5)
    assert section.figures[0].data["targets"] == [30.0]
    assert section.tables[0].title == "Cost to validation accuracy 30.00 %"


def test_one_seed_has_no_band_and_no_validation_no_line(tmp_path: Path) -> None:
    write_run(tmp_path / "a", scores=(None, 0.6))
    (line,) = trajectories(Shown((), tuple(gather([tmp_path / "a"])))).figures[0].data["lines"]
    assert (line["rounds"], line["mean"], line["band"]) == ([2], [60], None)
    assert line["seconds"] == [3]
    write_run(tmp_path / "b", scores=(None, None))
    assert trajectories(Shown((), tuple(gather([tmp_path / "b"])))).figures == ()
