"""The manifest: every artifact of a complete run, and what is wrong with a folder that is not as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.manifest import MANIFEST, compare, digests_of, manifest_text, read_manifest

FILES = ("config.yaml", "summary.json", "models/round-00002.safetensors", "states/round-00002.sqlite")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (*FILES, "clients/client-0000001.safetensors", "log.txt", "LOCK", "checkpoint.sqlite"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / MANIFEST).write_text(manifest_text(tmp_path))
    return tmp_path


def test_it_lists_what_a_result_consists_of_and_the_clients_as_one(folder: Path) -> None:
    found = read_manifest(folder)
    assert found is not None
    assert set(found) == {*FILES, "clients"}
    assert found["summary.json"] == digests_of(folder, ("summary.json",))["summary.json"]
    assert compare(folder, found) == []


def test_what_was_changed_or_taken_away_is_named(folder: Path) -> None:
    found = read_manifest(folder)
    assert found is not None
    (folder / "config.yaml").unlink()
    (folder / "summary.json").write_text("summary.jsom")
    (folder / "clients" / "client-0000001.safetensors").rename(folder / "clients" / "client-0000002.safetensors")
    assert compare(folder, found) == ["config.yaml is missing", "summary.json was changed", "clients was changed"]


def test_a_changed_manifest_is_refused_and_an_absent_one_is_none(folder: Path) -> None:
    plain = json.loads((folder / MANIFEST).read_text())
    plain["files"]["summary.json"] = "0" * 64
    (folder / MANIFEST).write_text(json.dumps(plain))
    with pytest.raises(RunDirectoryError, match=r"manifest\.json is damaged \(its checksum does not fit"):
        read_manifest(folder)
    (folder / MANIFEST).unlink()
    assert read_manifest(folder) is None
