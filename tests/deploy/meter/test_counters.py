"""Counters in a file: written by one process, read by another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fedreuse.core.errors import RunError
from fedreuse.deploy.meter.counters import LEVELS, Counters


def test_each_line_direction_and_level_has_its_own(tmp_path: Path) -> None:
    counters = Counters.create(tmp_path / "counters", 2, LEVELS)
    counters.add(0, "up", "transport", 5)
    counters.add(0, "up", "transport", 7)
    counters.add(1, "down", "interface", 2**40)
    assert counters.read(0, "up") == {"transport": 12, "interface": 0}
    assert counters.read(0, "down") == counters.read(1, "up") == {"transport": 0, "interface": 0}
    assert counters.read(1, "down") == {"transport": 0, "interface": 2**40}
    assert len(counters) == 2


def test_a_level_that_nobody_counts_is_absent(tmp_path: Path) -> None:
    counters = Counters.create(tmp_path / "counters", 1, ["transport"])
    assert counters.read(0, "up") == {"transport": 0}
    assert Counters.open(tmp_path / "counters").levels == ("transport",)


@pytest.mark.slow
def test_another_process_sees_what_is_added(tmp_path: Path) -> None:
    counters = Counters.create(tmp_path / "counters", 3, ["transport"])
    reader = Counters.open(tmp_path / "counters")
    counters.add(2, "up", "transport", 41)
    assert reader.read(2, "up") == {"transport": 41}
    code = (
        "import sys, pathlib; from fedreuse.deploy.meter.counters import Counters;"
        "print(Counters.open(pathlib.Path(sys.argv[1])).read(2, 'up'))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "counters")], capture_output=True, text=True, check=True
    )
    assert found.stdout == "{'transport': 41}\n"


@pytest.mark.parametrize("content", [b"", b"x" * 16, b"x" * 24, None])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "counters").write_bytes(content)
    with pytest.raises(RunError, match="counters"):
        Counters.open(tmp_path / "counters")
