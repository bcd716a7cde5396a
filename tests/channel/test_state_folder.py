"""State of an end, in memory and in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.channel.state_folder import StateFolder
from fedreuse.core.errors import RunDirectoryError
from fedreuse.engine.state.records import Contact
from fedreuse.testing.quadratic import quadratic_schema

SCHEMA = quadratic_schema()


@pytest.mark.parametrize("is_stored", [True, False])
def test_facts_states_and_counts(tmp_path: Path, is_stored: bool) -> None:
    state = StateFolder(tmp_path / "new" if is_stored else None, "the server")
    assert (state.fact("a"), state.load("x", SCHEMA, Contact), state.count("x")) == (None, None, 0)
    state.set_facts(a=1)
    state.save("x", Contact(3), SCHEMA)
    state.set_count("x", 4)
    assert (state.fact("a"), state.load("x", SCHEMA, Contact).ack, state.count("x")) == (1, 3, 4)
    state.close()
    if is_stored:
        again = StateFolder(tmp_path / "new", "the server")
        assert (again.fact("a"), again.load("x", SCHEMA, Contact).ack, again.count("x")) == (1, 3, 4)
        assert (tmp_path / "new").stat().st_mode & 0o77 == 0


def test_damage_is_named(tmp_path: Path) -> None:
    state = StateFolder(tmp_path, "the server")
    state.set_facts(a=1)
    state.set_count("x", 1)
    (tmp_path / "x.count").write_text("?")
    with pytest.raises(RunDirectoryError, match=r"x\.count is damaged; delete the folder"):
        state.count("x")
    state.close()
    (tmp_path / "channel.json").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"channel\.json is damaged"):
        StateFolder(tmp_path, "the server")
    (tmp_path / "channel.json").write_text('{"owner": "the server", "format": 9}')
    with pytest.raises(RunDirectoryError, match="channel version 9"):
        StateFolder(tmp_path, "the server")


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StateFolder(tmp_path, "the server")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fedreuse.channel.state_folder.write_whole", full)
    with pytest.raises(RunDirectoryError, match="No space left on device"):
        state.set_count("x", 1)
