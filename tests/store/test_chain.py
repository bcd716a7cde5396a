"""Chained logs: every line that is changed, removed or inserted is noticed."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.chain import append, head_of, heads_of, read_chain


def note(path: Path, *entries: dict[str, Any]) -> None:
    append(path, lambda known: entries)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    for number in range(4):
        note(tmp_path / "log", {"number": number})
    return tmp_path / "log"


def test_entries_are_read_back_and_each_holds_the_hash_before_it(log: Path) -> None:
    assert read_chain(log) == [{"number": number} for number in range(4)]
    lines = log.read_bytes().splitlines()
    hashes = [sha256(line).hexdigest() for line in lines]
    assert [json.loads(line)["before"] for line in lines] == ["", *hashes[:-1]]
    assert (head_of(log), heads_of(log)) == (hashes[-1], hashes)


def test_without_a_log_there_is_nothing(tmp_path: Path) -> None:
    assert read_chain(tmp_path / "log") == []
    assert head_of(tmp_path / "log") == ""
    append(tmp_path / "log", lambda known: [])
    assert read_chain(tmp_path / "log") == []


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("damage", ["change", "remove", "insert", "swap", "deep"])
def test_a_broken_chain_is_refused_by_readers_and_writers(log: Path, at: int, damage: str) -> None:
    lines = log.read_bytes().splitlines()
    if damage == "change":
        lines[at] = lines[at].replace(b'"number": ', b'"number": 7')
    elif damage == "remove":
        del lines[at]
    elif damage == "insert":
        lines.insert(at, lines[at])
    elif damage == "swap":
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
    else:
        lines[at] = b"[" * 1000
    log.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(RunDirectoryError, match="restore the file from a copy"):
        read_chain(log)
    with pytest.raises(RunDirectoryError, match="restore the file from a copy"):
        note(log, {"number": 9})


def test_a_line_that_a_crash_cut_is_dropped(log: Path) -> None:
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"number": 4, "bef')
    assert len(read_chain(log)) == 4
    note(log, {"number": 4})
    assert [entry["number"] for entry in read_chain(log)] == [0, 1, 2, 3, 4]


def test_the_choice_sees_what_is_there(log: Path) -> None:
    append(log, lambda known: [{"number": 2}] if {"number": 2} not in known else [])
    assert len(read_chain(log)) == 4
