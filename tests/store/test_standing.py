"""Progress of runs by hand: running, interrupted and complete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.store.directory import RunDirectory
from fedreuse.store.standing import Standing, standing_of
from tests.report.runs import write_run


def test_a_run_that_is_going_on(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "a", is_complete=False)
    (directory.path / "schedule.json").write_text(json.dumps({"cohorts": [[0, 1], [0, 1], [4, 7]]}))
    (directory.path / "log.txt").write_text("start\nround 2: reply of client 1 refused: too long\nround 2: done\n")
    one = standing_of(RunDirectory(directory.path))
    assert (one.state, one.rounds, one.planned_rounds, one.scores) == ("running", 2, 2, [0.4, 0.6])
    assert (one.now, one.num_refused, one.seconds, one.seconds_left) == ((4, 7), 1, 3.0, 0.0)


def test_one_whose_process_is_gone_was_interrupted(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "a", is_complete=False)
    (directory.path / "LOCK").write_text("999999999")
    assert standing_of(directory).state == "interrupted"
    assert standing_of(directory).now == ()
    assert standing_of(write_run(tmp_path / "b")).state == "complete"


def test_time_left_and_saving() -> None:
    one = Standing("running", "accuracy", 4, 10, used_bytes=25, dense_bytes=100, seconds=8.0)
    assert (one.seconds_left, one.saving) == (pytest.approx(12.0), 0.75)  # 8 s / 4 rounds * 6 rounds
    fresh = Standing("running", "accuracy", 0, 10)
    assert (fresh.seconds_left, fresh.saving) == (None, None)
    assert Standing("complete", "accuracy", 4, 10).seconds_left == 0.0
