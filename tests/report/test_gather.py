"""Runs from several places: each once, seeds together, and other settings told apart by what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.core.checked import with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.report.gather import admitted, gather
from fedreuse.report.results import read_runs
from fedreuse.report.variants import by_variant
from fedreuse.store.manifest import MANIFEST, manifest_text
from tests.report.runs import write_run

TOP_K = {"update": {"name": "top_k_sender", "codec": {"name": "top_k", "ratio": 0.2}, "decay": 1.0}}
FADING = {"update": {"name": "top_k_sender", "codec": {"name": "top_k", "ratio": 0.2}, "decay": 0.5}}


def test_seeds_of_one_setting_are_one_variant(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_run(tmp_path / f"s{seed}", seed=seed)
    found = gather([tmp_path / "s1", tmp_path / "s2"])
    assert [len(variant.results) for variant in by_variant(found)] == [2]


def test_a_run_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    assert len(gather([tmp_path / "a", tmp_path])) == 1


def test_namesakes_with_other_settings_are_told_apart_by_them(tmp_path: Path) -> None:
    write_run(tmp_path / "a", uplink=TOP_K)
    write_run(tmp_path / "b", uplink=FADING)
    first, second = gather([tmp_path / "a", tmp_path / "b"])
    assert first.variant.endswith("(uplink.update.decay 1.0)")
    assert second.variant.endswith("(uplink.update.decay 0.5)")


def test_the_same_run_made_twice_is_told_apart_by_its_folder(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    write_run(tmp_path / "b")
    names = [result.variant for result in gather([tmp_path / "a", tmp_path / "b"])]
    assert [name.rpartition(" ")[2] for name in names] == ["(a)", "(b)"]


def test_a_folder_of_other_settings_is_never_averaged(tmp_path: Path) -> None:
    write_run(tmp_path / "a", uplink=TOP_K)
    write_run(tmp_path / "b", uplink=FADING)
    assert len(by_variant(gather([tmp_path]))) == 2


def test_a_place_without_a_run(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunDirectoryError, match="empty: no run directory here"):
        gather([tmp_path / "a", tmp_path / "empty"])


def test_the_rounds_of_a_run_as_a_frame(tmp_path: Path) -> None:
    frame = write_run(tmp_path / "a", scores=(None, 0.6)).frame()
    assert frame.index.tolist() == [1, 2]
    assert frame["validation_score"].dropna().to_dict() == {2: 0.6}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that holds together, one with a score that was never recorded, one that nobody can read."""
    for name in ("good", "improved", "ruined"):
        write_run(tmp_path / name, seed=len(name))
    (tmp_path / "improved" / "test-opened.json").write_text(json.dumps(with_check({"result": {"score": 0.25}})))
    (tmp_path / "improved" / MANIFEST).write_text(manifest_text(tmp_path / "improved"))
    (tmp_path / "ruined" / "config.yaml").write_text("[")
    return tmp_path


def test_runs_that_fail_are_left_out_with_the_reason(folder: Path) -> None:
    kept, lines = admitted(read_runs(folder))
    assert [result.directory.name for result in kept] == ["good"]
    assert len(lines) == 2
    assert "improved): test: test score is 0.25 by the rows, but 0.5 is stored" in lines[0]
    assert lines[1].startswith("left out: ruined")
    assert "config.yaml was changed" in lines[1]


def test_they_are_shown_with_a_mark_to_who_asks(folder: Path) -> None:
    kept, lines = admitted(read_runs(folder), admit_partial=True)
    assert [result.variant.endswith("[!]") for result in kept] == [False, True, True]
    assert kept[1].test_score == 0.5
    assert all(line.startswith("[!] ") for line in lines)


def test_a_table_without_any_run_is_refused(folder: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"config\.yaml was changed.*--admit-partial shows such runs"):
        admitted(read_runs(folder / "ruined"))
