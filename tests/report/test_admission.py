"""Which runs a table shows: those that hold together; others with a mark, for who wants to see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.report.admission import admitted
from fedreuse.report.results import read_runs
from tests.report.runs import write_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that holds together, one with a score that was never recorded, one that nobody can read."""
    for name in ("good", "improved", "ruined"):
        write_run(tmp_path / name, seed=len(name))
    (tmp_path / "improved" / "test-opened.json").write_text(json.dumps({"result": {"score": 0.25}}))
    (tmp_path / "ruined" / "config.yaml").write_text("[")
    return tmp_path


def test_runs_that_fail_are_left_out_with_the_reason(folder: Path) -> None:
    kept, lines = admitted(read_runs(folder))
    assert [result.directory.name for result in kept] == ["good"]
    assert len(lines) == 2
    assert "improved): test: test score is 0.25 by the rows, and 0.5 is told" in lines[0]
    assert lines[1].startswith("left out: ruined")
    assert "config.yaml cannot be read" in lines[1]


def test_they_are_shown_with_a_mark_to_who_asks(folder: Path) -> None:
    kept, lines = admitted(read_runs(folder), admit_partial=True)
    assert [result.variant.endswith("[!]") for result in kept] == [False, True, True]
    assert kept[1].test_score == 0.5
    assert all(line.startswith("[!] ") for line in lines)


def test_a_table_without_any_run_is_refused(folder: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"config\.yaml cannot be read.*--admit-partial shows such runs"):
        admitted(read_runs(folder / "ruined"))
