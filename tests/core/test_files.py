"""Whole files: the new one or the old one, never half of one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fedreuse.core.files import beside, clear_leftovers, write_whole


def test_pieces_follow_one_another(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"one", memoryview(b"two"))
    assert (tmp_path / "a").read_bytes() == b"onetwo"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_old_file_stays_if_the_new_one_fails(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_whole(path, b"old")
    with pytest.raises(TypeError):
        write_whole(path, b"new", 3)  # type: ignore[arg-type]  # cut short on purpose
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_half_written_one_lies_beside_under_a_name_of_the_process(tmp_path: Path) -> None:
    partial = beside(tmp_path / "a.json")
    assert partial == tmp_path / f".a.json.{os.getpid()}.part"
    partial.write_bytes(b"half")
    write_whole(tmp_path / "a.json", b"whole")
    assert not partial.exists()


def test_a_missing_folder_is_the_callers_business(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "nowhere" / "a", b"")


def test_what_is_private_is_so_from_the_first_byte(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"secret", is_private=True)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_what_killed_writers_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = [f".a.{gone.pid}.part", f".young.{gone.pid}.part", f".mine.{os.getpid()}.part", ".b.part", "c.part"]
    for name in names:
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (0, 0) if "young" not in name else None)
    clear_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])
