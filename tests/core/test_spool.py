"""Large arrays in files: the same bits, no memory of the process, and nothing left behind."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from fedreuse.compression.links.error_feedback import Dated
from fedreuse.core import mapped
from fedreuse.core.mapped import is_mapped
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.spool import spooled, spooled_state
from fedreuse.core.tensors import Tensors, is_equal

SCHEMA = Schema((TensorSpec("a", (30, 10)), TensorSpec("b", (7,))))


def tensors(index: np.ndarray | None = None) -> Tensors:
    size = SCHEMA.size if index is None else len(index)
    return Tensors(SCHEMA, np.random.default_rng(0).normal(size=size).astype(np.float32), index)


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(mapped, "_LARGE_BYTES", 100)
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
