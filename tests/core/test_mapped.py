"""Unlinked, mapped files: their content, arrays that are computed in them, and disks that are full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core import mapped
from fedreuse.core.errors import RunError
from fedreuse.core.mapped import is_mapped, map_file, open_spool, vacant, write_pieces
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, add, is_equal, sub, weighted_sum


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(mapped, "_LARGE_BYTES", 100)
    monkeypatch.setenv("FEDREUSE_SPOOL", str(tmp_path))
    return tmp_path


def test_pieces_of_any_length(small_is_large: Path) -> None:
    with open_spool() as file:
        assert write_pieces(file, [b"ab", np.arange(3, dtype="<u2").data, b""]) == 8
        content = map_file(file)
    assert bytes(content) == b"ab\0\0\1\0\2\0"
    with open_spool() as file:
        assert bytes(map_file(file)) == b""


def test_a_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FEDREUSE_SPOOL", str(tmp_path / "nowhere"))
    with pytest.raises(RunError, match=r"nowhere .*set FEDREUSE_SPOOL to a folder on a disk"):
        open_spool()


def test_a_full_disk_is_an_error_with_a_way_out() -> None:
    with Path("/dev/full").open("r+b", buffering=0) as full, pytest.raises(RunError, match="free some disk space"):
        write_pieces(full, [b"x"])


def test_sums_of_large_tensors_lie_in_files_with_the_same_bits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    schema, rng = Schema((TensorSpec("a", (300,)),)), np.random.default_rng(2)
    one, other = (Tensors(schema, rng.standard_normal(300).astype(np.float32)) for _ in range(2))

    def computed() -> list[Tensors]:
        return [add(one, other), sub(one, other), weighted_sum([(0.3, one), (0.7, other)], schema)]

    here = computed()
    assert not any(is_mapped(tensors.values) for tensors in here)
    monkeypatch.setattr(mapped, "_LARGE_BYTES", 100)
    monkeypatch.setenv("FEDREUSE_SPOOL", str(tmp_path))
    elsewhere = computed()
    assert all(is_mapped(tensors.values) for tensors in elsewhere)
    assert all(map(is_equal, here, elsewhere))
    assert list(tmp_path.iterdir()) == []


def test_a_large_array_needs_its_disk_at_once(small_is_large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(small_is_large.iterdir()) == []

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    assert len(vacant(3, np.dtype(np.float32))) == 3
    with pytest.raises(RunError, match=r"No space left on device.*free some disk space"):
        vacant(300, np.dtype(np.float32))
