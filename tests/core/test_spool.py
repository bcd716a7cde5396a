"""Large arrays in files: the same bits, no memory of the process, and nothing left behind."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from fedreuse.compression.links.error_feedback import Dated
from fedreuse.core import spool
from fedreuse.core.errors import RunError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.spool import is_mapped, map_file, open_spool, spooled, spooled_state, write_pieces
from fedreuse.core.tensors import Tensors, is_equal

SCHEMA = Schema((TensorSpec("a", (30, 10)), TensorSpec("b", (7,))))


def tensors(index: np.ndarray | None = None) -> Tensors:
    size = SCHEMA.size if index is None else len(index)
    return Tensors(SCHEMA, np.random.default_rng(0).normal(size=size).astype(np.float32), index)


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(spool, "_LARGE_BYTES", 100)
    monkeypatch.setenv("FEDREUSE_SPOOL", str(tmp_path))
    return tmp_path


def test_small_tensors_stay_where_they_are() -> None:
    given = tensors()
    assert spooled(given) is given
    assert not is_mapped(given.values)


@pytest.mark.parametrize("index", [None, np.arange(0, 300, 3, dtype=np.int32)])
def test_large_ones_move_with_the_same_bits(small_is_large: Path, index: np.ndarray | None) -> None:
    given = tensors(index)
    moved = spooled(given)
    assert is_mapped(moved.values)
    assert index is None or is_mapped(moved.index)
    assert is_equal(moved, given)
    assert spooled(moved) is moved
    assert list(small_is_large.iterdir()) == []  # the file has no name
    del given
    gc.collect()
    assert np.isfinite(moved["a"]).all()


def test_states_of_links_at_any_depth(small_is_large: Path) -> None:
    dated = spooled_state(Dated(tensors(), 3))
    assert is_mapped(dated.residual.values)
    assert dated.round_number == 3
    assert spooled_state(dated) is dated
    assert spooled_state(None) is None


def test_pieces_of_any_length(small_is_large: Path) -> None:
    with open_spool() as file:
        assert write_pieces(file, [b"ab", np.arange(3, dtype="<u2").data, b""]) == 8
        mapped = map_file(file)
    assert bytes(mapped) == b"ab\0\0\1\0\2\0"
    with open_spool() as file:
        assert bytes(map_file(file)) == b""


def test_a_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FEDREUSE_SPOOL", str(tmp_path / "nowhere"))
    with pytest.raises(RunError, match=r"nowhere .*set FEDREUSE_SPOOL to a folder on a disk"):
        open_spool()


def test_a_full_disk_is_an_error_with_a_way_out() -> None:
    with Path("/dev/full").open("r+b", buffering=0) as full, pytest.raises(RunError, match="free some disk space"):
        write_pieces(full, [b"x"])
