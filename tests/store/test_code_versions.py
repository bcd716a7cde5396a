"""Runs from one version of the code, and from several."""

from __future__ import annotations

import json
from pathlib import Path

from fedreuse.core.checked import with_check
from fedreuse.core.formats import RUN_DIRECTORY
from fedreuse.store.code_versions import count_versions, several_versions
from fedreuse.store.directory import RunDirectory


def run_by(place: Path, version: str, commit: str | None) -> RunDirectory:
    place.mkdir()
    facts = {"format": RUN_DIRECTORY.version, "fedreuse": version, "code": {"commit": commit, "is_modified": False}}
    (place / "provenance.json").write_text(json.dumps(with_check(facts)))
    return RunDirectory(place)


def test_versions_are_counted_and_several_are_named(tmp_path: Path) -> None:
    old = [run_by(tmp_path / name, "1.0", "0123456789abcdef") for name in ("a", "b")]
    new = run_by(tmp_path / "c", "1.1", None)
    assert several_versions([]) == several_versions(old) == ""
    assert count_versions(old) == {("1.0", "0123456789ab"): 2}
    note = "the runs come from 2 versions of the code: 2 by 1.0 (0123456789ab); 1 by 1.1 (None)"
    assert several_versions([*old, new]) == note


def test_another_commit_is_another_version(tmp_path: Path) -> None:
    runs = [run_by(tmp_path / commit, "1.0", commit) for commit in ("aaa", "bbb")]
    assert "2 versions" in several_versions(runs)
