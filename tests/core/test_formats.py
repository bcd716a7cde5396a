"""Versions of formats: written, read, a foreign one refused by name; the page of the run directory has the same."""

from __future__ import annotations

import json
import shutil
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

STORED = Path(__file__).parents[1] / "runs" / "stored"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "run-directory.md"


def test_a_program_reads_what_it_writes() -> None:
    assert all(one.version in one.reads for one in FORMATS)
    assert len({one.name for one in FORMATS}) == len(FORMATS)


def test_a_foreign_version_is_refused_with_both_numbers() -> None:
    with pytest.raises(
        WireError, match=r"^it is written as letter version 4, and this program reads 2, 3; use the ver"
    ):
        Format("letter", 3, (2, 3)).check(4, "it", WireError)
    WIRE.check(1, "it")


def test_a_journal_tells_its_version(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    Journal(path).close()
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (JOURNAL.version,)
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(RunDirectoryError, match=r"j\.sqlite is written as journal version 99"):
        Journal(path)


@pytest.mark.slow
def test_a_journal_from_before_the_numbers_is_read_and_stays_as_it_is(tmp_path: Path) -> None:
    path = Path(shutil.copy(STORED / "killed-fedadam" / "checkpoint.sqlite", tmp_path / "j.sqlite"))
    old = Journal(path)
    number = old.round_number
    assert number > 0
    assert not old.is_checked
    old.verify()
    old.commit(number + 1, {"metrics": [{"round": number + 1}]}, {("clients", 0): b"new", ("clients", 1): None})
    assert [row["round"] for row in old.rows("metrics")][-1] == old.round_number == number + 1
    old.close()
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (0,)


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
    before = read_state(restated(data, format=None), model.schema, "here")
    assert before.weights.values.tobytes() == model.weights.values.tobytes()
    with pytest.raises(RunDirectoryError, match=rf"^here is written as {CLIENT_STORE.name} version 99"):
        read_state(restated(data, format=99), model.schema, "here")


def test_a_run_directory_tells_its_version(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.write_json("provenance.json", {"run_id": "x"})
    assert directory.provenance == {"run_id": "x"}  # from before the numbers
    directory.write_json("provenance.json", {"format": 99})
    with pytest.raises(RunDirectoryError, match=rf"is written as {RUN_DIRECTORY.name} version 99"):
        _ = directory.provenance


def test_the_page_has_the_same_versions() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [one.name for one in FORMATS if f"| {one.name} | {one.version} |" not in text] == []
