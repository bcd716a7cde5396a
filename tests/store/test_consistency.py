"""Consistency of a run: stored values are compared with the tables, and a difference names both."""

from __future__ import annotations

from math import nan
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.consistency import check_run, failures, same
from fedreuse.store.directory import RunDirectory
from fedreuse.store.manifest import MANIFEST, manifest_text
from tests.report.runs import write_run


def test_values_are_compared_as_json_holds_them() -> None:
    same("it", {"a": (1, 2), "b": nan}, {"a": [1, 2], "b": nan})
    with pytest.raises(RunDirectoryError, match=r"it is 0\.5 by the rows, but 0\.6 is stored"):
        same("it", 0.5, 0.6)


def test_a_summary_without_optional_entries_passes_all_checks(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    assert failures(run) == ""
    assert {check.verdict for check in check_run(run)} == {"ok"}


def test_a_test_score_without_its_record_fails(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run.path / "test-opened.json").unlink()
    (run.path / MANIFEST).write_text(manifest_text(run.path))
    assert failures(run) == "test: there is a test score, but no record of the test evaluation"


def test_an_incomplete_run_has_no_result(tmp_path: Path) -> None:
    (only,) = check_run(write_run(tmp_path / "run", is_complete=False))
    assert (only.name, only.verdict) == ("complete", "failed")
    assert check_run(RunDirectory(tmp_path / "nowhere"))[0].said == "the run is absent and has no result"
