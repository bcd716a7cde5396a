"""Lock of a run directory: one writer, named to the second, and free after a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.directory import RunDirectory
from fedreuse.store.lock import LOCK, WriteLock


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    first, second = RunDirectory(tmp_path / "run"), RunDirectory(tmp_path / "run")
    first.lock()
    message = rf"run is in use by process {os.getpid()}; wait for it to end, or choose another `out`"
    with pytest.raises(RunDirectoryError, match=message):
        second.lock()
    first.release()
    second.lock()
    second.release()


@pytest.mark.slow
def test_a_writer_that_died_holds_nothing(tmp_path: Path) -> None:
    script = "import os, sys; from fedreuse import RunDirectory; RunDirectory(sys.argv[1]).lock(); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], check=False).returncode == 9
    assert (tmp_path / "run" / "LOCK").read_text() != ""
    directory = RunDirectory(tmp_path / "run")
    directory.lock()
    assert (tmp_path / "run" / "LOCK").read_text() == str(os.getpid())
    directory.release()


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunDirectoryError, match=r"file/run cannot be written \(.*\); choose another `out`"):
        RunDirectory(tmp_path / "file" / "run").lock()


def test_a_folder_is_new_to_its_creator_only(tmp_path: Path) -> None:
    lock = WriteLock(tmp_path / "run")
    assert lock.acquire()
    assert (tmp_path / "run" / LOCK).read_text() == str(os.getpid())
    lock.release()
    lock.release()
    assert not lock.acquire()
    lock.release()
