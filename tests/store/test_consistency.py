"""What a run says of itself: compared where it is told, refused with both values where it differs."""

from __future__ import annotations

from math import nan
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.consistency import check_run, failures, same
from fedreuse.store.directory import RunDirectory
from tests.report.runs import write_run


def test_values_are_compared_as_json_holds_them() -> None:
    same("it", {"a": (1, 2), "b": nan}, {"a": [1, 2], "b": nan})
    with pytest.raises(RunDirectoryError, match=r"it is 0\.5 by the rows, and 0\.6 is told"):
        same("it", 0.5, 0.6)


def test_an_older_run_that_tells_less_is_unverified_and_may_be_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    assert failures(run) == ""
    verdicts = {check.name: check.verdict for check in check_run(run)}
    assert verdicts["manifest"] == verdicts["test"] == "unverified"
    assert verdicts["ledger"] == verdicts["events"] == verdicts["rounds"] == "ok"


def test_an_incomplete_run_has_no_result(tmp_path: Path) -> None:
    (only,) = check_run(write_run(tmp_path / "run", is_complete=False))
    assert (only.name, only.verdict) == ("complete", "failed")
    assert check_run(RunDirectory(tmp_path / "nowhere"))[0].said == "the run is absent, so that it has no result"
