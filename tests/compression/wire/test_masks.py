"""Coded masks: any set of positions comes back, rows of like density are cheap, and lies are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.wire.entropy import ByteSource, squeeze
from fedreuse.compression.wire.masks import code_mask, expand_mask, num_rows
from fedreuse.core.errors import WireError
from fedreuse.core.schema import TensorSpec


def there_and_back(marks: np.ndarray) -> bytes:
    spec = TensorSpec("layer.weight", marks.shape)
    positions = np.flatnonzero(marks).astype(np.int32)
    coded = code_mask(positions, spec)
    source = ByteSource(np.frombuffer(coded, np.uint8), spec.name)
    found = expand_mask(source, spec, len(positions))
    source.close()
    np.testing.assert_array_equal(found, positions)
    return coded


@pytest.mark.slow
@given(
    st.sampled_from([(0,), (1,), (7,), (300,), (70_000,), (3, 5), (40, 9), (64, 300), (128, 1000), (5, 3, 3, 3)]),
    st.sampled_from([0.0, 0.001, 0.03, 0.2, 0.9, 1.0]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=120, deadline=None)
def test_any_positions_come_back(shape: tuple[int, ...], share: float, seed: int) -> None:
    there_and_back(np.random.default_rng(seed).random(shape) < share)


def test_rows_of_like_density() -> None:
    # densities 0.02, 0.1 and 0.3 in turn: 0.14, 0.47 and 0.88 bits a coordinate, 0.50 on average; one table needs more
    rng = np.random.default_rng(1)
    marks = rng.random((128, 4096)) < np.array([0.02, 0.1, 0.3])[np.arange(128) % 3][:, None]
    coded = there_and_back(marks)
    assert coded[0] == 1
    assert 0.5 < 8 * len(coded) / marks.size < 0.56
    assert len(coded) < 0.98 * len(squeeze(np.packbits(marks)))


def test_few_positions_are_gaps() -> None:
    marks = np.zeros(100_000, np.bool_)
    marks[::100] = True
    coded = there_and_back(marks)
    assert coded[0] == 2
    assert len(coded) < 100  # every gap is 99
    rng = np.random.default_rng(0)
    some = np.zeros(100_000, np.bool_)
    some[rng.choice(100_000, 1000, replace=False)] = True
    assert len(there_and_back(some)) < 1.2 * 1000 * 8.1 / 8  # log2 C(d, k) is 8.07 bits each


def test_a_row_is_a_slice_along_the_first_axis() -> None:
    assert [num_rows(TensorSpec("t", shape)) for shape in [(), (5,), (0,), (4, 3), (4, 3, 2), (4, 0)]] == [
        1, 1, 1, 4, 4, 1,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"\x03", "the number 3 is above 2"),
        (b"\x00" + squeeze(np.array([7, 2], np.uint8)), "4 coordinates are marked, but the message says 3"),
        (b"\x00" + squeeze(np.array([1, 6], np.uint8)), "a mark beyond the last coordinate"),
        (b"\x01" + squeeze(np.array([1, 32], np.uint8)), "a mark beyond the last coordinate of a row"),
        (b"\x02" + squeeze(np.array([4, 4, 4], np.uint8)), "3 coordinates are marked, but the message says 3"),
        (b"\x02\x00\x01", "ends 2 bytes early"),
    ],
)
def test_lies_are_refused(data: bytes, match: str) -> None:
    spec = TensorSpec("layer.weight", (2, 5))
    with pytest.raises(WireError, match=match):
        expand_mask(ByteSource(np.frombuffer(data, np.uint8), spec.name), spec, 3)


@pytest.mark.parametrize(
    ("size", "width"), [(200, 1), (256, 1), (257, 2), (512, 2), (65536, 2), (65537, 4), (131072, 4)]
)
def test_bytes_of_a_gap(size: int, width: int) -> None:
    # one position after a gap of 3: the form, and for each byte of the gap a plane of one uncompressed byte
    coded = code_mask(np.array([3], np.int32), TensorSpec("w", (size,)))
    assert coded == bytes([2, 0, 3]) + bytes([0, 0]) * (width - 1)


def test_two_rows_of_unlike_bytes_are_coded_apart() -> None:
    # every eighth coordinate of each row, whose width is no multiple of 8: equal bytes within rows, not across them
    marks = np.zeros((2, 8001), np.bool_)
    marks[:, ::8] = True
    assert there_and_back(marks)[0] == 1
