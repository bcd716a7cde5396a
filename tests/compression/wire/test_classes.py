"""Rows by classes: there and back for any lengths, and rows of a kind together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.wire.classes import code_rows, expand_rows
from fedreuse.compression.wire.entropy import ByteSource, squeeze
from fedreuse.core.errors import WireError


def there_and_back(data: np.ndarray, lengths: np.ndarray, keys: np.ndarray) -> bytes:
    coded = code_rows(data, lengths, keys)
    source = ByteSource(np.frombuffer(coded, np.uint8), "t")
    np.testing.assert_array_equal(expand_rows(source, lengths), data)
    source.close()
    return coded


@pytest.mark.slow
@given(st.lists(st.integers(0, 900), min_size=1, max_size=40), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_rows_of_any_length_come_back(lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    of_rows = np.array(lengths)
    data = rng.integers(0, 4, of_rows.sum()).astype(np.uint8)
    there_and_back(data, of_rows, rng.random(len(lengths)))


def test_rows_of_a_kind_share_a_table() -> None:
    # sixteen rows, by turns of small and of large symbols: each kind alone has 2 bits of entropy, both together 3
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 4, 1024) + 100 * (row % 2) for row in range(16)]
    data = np.concatenate(rows).astype(np.uint8)
    coded = there_and_back(data, np.full(16, 1024), np.array([row.mean() for row in rows]))
    assert len(coded) < 0.28 * len(data) < 0.36 * len(data) < len(squeeze(data))


def test_a_class_that_is_not_there_is_refused() -> None:
    lengths = np.full(4, 2048)
    data = squeeze(np.array([0, 1, 4, 2], np.uint8)) + squeeze(np.zeros(8192, np.uint8))
    with pytest.raises(WireError, match="a row of class 4, but there are 4"):
        expand_rows(ByteSource(np.frombuffer(data, np.uint8), "t"), lengths)
