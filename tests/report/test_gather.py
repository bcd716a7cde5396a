"""Runs from several places: each once, seeds together, and other settings told apart by what differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.report.gather import gather
from fedreuse.report.variants import by_variant
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
