"""Versions of formats: written, read, a foreign one refused by name; the page of the run directory has the same."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from fedreuse.core.errors import RunDirectoryError, WireError
from fedreuse.core.formats import CLIENT_STORE, FORMATS, JOURNAL, RUN_DIRECTORY, WIRE, Format
from fedreuse.core.model import Model
from fedreuse.engine.state.state_file import read_state, write_state
from fedreuse.store.directory import RunDirectory
from fedreuse.store.journal import Journal
from fedreuse.testing.quadratic import QuadraticFederation

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "run-directory.md"


def test_names_are_unique() -> None:
    assert len({one.name for one in FORMATS}) == len(FORMATS)


def test_a_foreign_version_is_refused_with_both_numbers() -> None:
    with pytest.raises(WireError, match=r"^it is written as letter version 4, but this program reads version 3"):
        Format("letter", 3).check(4, "it", WireError)
    WIRE.check(1, "it")


def test_a_journal_tells_its_version(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    Journal(path).close()
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (JOURNAL.version,)
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(RunDirectoryError, match=r"j\.sqlite is written as journal version 99"):
        Journal(path)


def test_a_journal_without_a_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "j.sqlite") as database:
        database.execute("CREATE TABLE meta (name TEXT)")
    with pytest.raises(RunDirectoryError, match=r"j\.sqlite is written as journal version 0"):
        Journal(tmp_path / "j.sqlite")


def restated(data: bytes, **changes: object) -> bytes:
    """A stored state whose document has other entries; None takes one away."""
    from zlib import crc32

    arrays = load(data[:-4])
    document = {**json.loads(arrays["plain"].tobytes()), **changes}
    text = json.dumps({name: value for name, value in document.items() if value is not None})
    packed: bytes = save({**arrays, "plain": np.frombuffer(text.encode(), np.uint8)})
    return packed + crc32(packed).to_bytes(4, "little")


def test_a_stored_state_tells_its_version() -> None:
    model: Model = QuadraticFederation.draw().initial
    data = write_state(model, model.schema)
    assert restated(data) == data
    for version in (None, 99):
        with pytest.raises(RunDirectoryError, match=rf"^here is written as {CLIENT_STORE.name} version {version}"):
            read_state(restated(data, format=version), model.schema, "here")


def test_a_run_directory_tells_its_version(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.write_json("provenance.json", {"format": 99})
    with pytest.raises(RunDirectoryError, match=rf"is written as {RUN_DIRECTORY.name} version 99"):
        _ = directory.provenance


def test_the_page_has_the_same_versions() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [one.name for one in FORMATS if f"| {one.name} | {one.version} |" not in text] == []
