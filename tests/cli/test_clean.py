"""`fedreuse clean`: shown first, removed when asked; nothing that a run still needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fedreuse.store.directory import RunDirectory
from tests.cli.conftest import Invoke


@pytest.fixture
def runs(complete: Path, incomplete: Path, tmp_path: Path) -> Path:
    done = Path(shutil.copytree(complete, tmp_path / "done"))
    (done / "checkpoint.sqlite").write_bytes(b"x" * 1000)
    (done / "server").mkdir()
    (done / "server" / "entry").write_bytes(b"x" * 500)
    (done / ".summary.json.1.part").write_bytes(b"x" * 10)
    return tmp_path


@pytest.mark.slow
def test_it_shows_first_and_removes_when_asked(invoke: Invoke, runs: Path) -> None:
    before = sorted(runs.rglob("*"))
    shown = json.loads(invoke("clean", runs, "--json").stdout)
    assert (shown["removed"], shown["bytes"], len(shown["found"])) == (False, 1510, 3)
    assert "--yes" in invoke("clean", runs).stdout
    assert sorted(runs.rglob("*")) == before
    assert invoke("clean", runs, "--yes").exit_code == 0
    gone = {path.name for path in before if not path.exists()}
    assert gone == {"checkpoint.sqlite", "server", "entry", ".summary.json.1.part"}
    assert RunDirectory.open(runs / "done").summary
    assert (runs / "incomplete" / "checkpoint.sqlite").exists(), "it can still go on"
    assert "nothing to remove in 2 run directories" in invoke("clean", runs).stdout


@pytest.mark.slow
def test_a_sealed_run_keeps_what_its_opening_needs(invoke: Invoke, tiny: Path, tmp_path: Path) -> None:
    assert invoke("run", tiny, "rounds.count=1", "test=sealed", "--out", tmp_path / "sealed").exit_code == 0
    assert invoke("clean", tmp_path / "sealed", "--yes").exit_code == 0
    assert invoke("unseal", tmp_path / "sealed").exit_code == 0


@pytest.mark.slow
def test_a_run_at_work_is_left_alone(invoke: Invoke, runs: Path) -> None:
    busy = RunDirectory(runs / "done")
    busy.lock()
    try:
        shown = invoke("clean", runs, "--yes")
    finally:
        busy.release()
    assert shown.exit_code == 2
    assert "is in use" in shown.stderr
    assert (runs / "done" / "server").exists()


@pytest.mark.slow
def test_no_runs(invoke: Invoke, in_folder: Path) -> None:
    assert invoke("clean").exit_code == 2
    assert invoke("clean", in_folder).exit_code == 2
