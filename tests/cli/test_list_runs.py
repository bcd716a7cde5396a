"""`fedreuse list runs`: state, score, bytes, size and date of every run; filtered and sorted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke


@pytest.fixture
def runs(complete: Path, incomplete: Path, tmp_path: Path) -> Path:
    shutil.copytree(complete, tmp_path / "complete")
    return tmp_path


@pytest.mark.slow
def test_a_row_has_state_score_bytes_size_and_date(invoke: Invoke, runs: Path) -> None:
    told = {Path(one["directory"]).name: one for one in json.loads(invoke("list", "runs", runs, "--json").stdout)}
    assert told["complete"]["state"] == "complete"
    assert told["incomplete"]["state"] == "1/2 rounds"
    size = sum(file.stat().st_size for file in (runs / "complete").rglob("*"))
    assert told["complete"]["disk_bytes"] == size
    assert told["complete"]["changed"].startswith("20")
    shown = " ".join(invoke("list", "runs", runs).stdout.split())
    assert "1/2 rounds" in shown
    assert "fedavg, top_k 0.2" in shown


@pytest.mark.slow
def test_a_run_in_a_study_is_named_by_its_place_in_the_folder(invoke: Invoke, runs: Path) -> None:
    shutil.copytree(runs / "complete", runs / "study" / "one")
    assert "study/one" in invoke("list", "runs", runs).stdout
    assert "one" in invoke("list", "runs", runs / "study" / "one").stdout


@pytest.mark.slow
def test_filter_and_sort(invoke: Invoke, runs: Path) -> None:
    def found(*words: str) -> list[str]:
        told = json.loads(invoke("list", "runs", runs, "--json", *words).stdout)
        return [Path(one["directory"]).name for one in told]

    assert found("--only", "1/2") == ["incomplete"]
    assert found("--only", "digits", "--only", "absent") == []
    assert found("--sort", "name") == ["complete", "incomplete"]
    assert found("--sort", "bytes") == ["incomplete", "complete"]
    assert "did you mean 'score'?" in invoke("list", "runs", runs, "--sort", "scor").stderr
    assert "match absent" in invoke("list", "runs", runs, "--only", "absent").stdout


@pytest.mark.slow
def test_a_run_that_cannot_be_read_is_marked_and_the_others_are_listed(invoke: Invoke, spoilt: Path) -> None:
    shown = invoke("list", "runs", spoilt)
    assert shown.exit_code == 0, shown.stderr
    words = " ".join(shown.stdout.split())
    assert "good complete" in words
    assert "ruined damaged" in words
    assert f"[!] ruined ({spoilt / 'ruined'}): {spoilt / 'ruined'} is damaged" in words
    assert "another --out" in words
    told = {Path(one["directory"]).name: one for one in json.loads(invoke("list", "runs", spoilt, "--json").stdout)}
    assert {name: (one["state"], bool(one["fault"])) for name, one in told.items()} == {
        "good": ("complete", False), "ruined": ("damaged", True)
    }  # fmt: skip
    assert "good" not in invoke("list", "runs", spoilt, "--only", "damaged", "--sort", "score").stdout
