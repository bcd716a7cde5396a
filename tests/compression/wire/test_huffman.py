"""Canonical Huffman codes: as short as the best, never above fifteen bits, read side by side, and lies refused."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.wire.huffman import (
    MAX_LENGTH,
    SEGMENT,
    code_lengths,
    huffman_decode,
    huffman_encode,
    is_complete,
)
from fedreuse.core.errors import WireError


def best_total(counts: list[int]) -> int:
    """Bits of Huffman's own algorithm: the sum of all merges."""
    heap = [count for count in counts if count]
    heapq.heapify(heap)
    total = 0
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        total += merged
        heapq.heappush(heap, merged)
    return total


def test_lengths_by_hand() -> None:
    # 8, 4, 2, 1, 1: merge 1 + 1, 2 + 2, 4 + 4, 8 + 8
    assert code_lengths(np.array([8, 4, 0, 2, 1, 1])).tolist() == [1, 2, 0, 3, 4, 4]


def test_codes_by_hand() -> None:
    # lengths 1, 2, 3, 3: codes 0, 10, 110, 111. Symbols 3 0 1 2 0: 111 0 10 110 0 -> 1110 1011 00
    segments, stream = huffman_encode(np.array([3, 0, 1, 2, 0]), np.array([1, 2, 3, 3], np.uint8))
    assert segments.tolist() == [10]
    assert stream.tolist() == [0b11101011, 0]


@pytest.mark.slow
@given(st.lists(st.integers(0, 1000), min_size=2, max_size=60).filter(lambda counts: sum(c > 0 for c in counts) > 1))
@settings(max_examples=200, deadline=None)
def test_no_prefix_code_is_shorter(counts: list[int]) -> None:
    lengths = code_lengths(np.array(counts))
    assert is_complete(lengths)
    assert int((lengths * np.array(counts)).sum()) == best_total(counts)
    assert [length > 0 for length in lengths] == [count > 0 for count in counts]


def test_skewed_counts_stay_within_fifteen_bits() -> None:
    fibonacci = [1, 1]
    while len(fibonacci) < 30:
        fibonacci.append(sum(fibonacci[-2:]))
    lengths = code_lengths(np.array(fibonacci))
    assert lengths.max() == MAX_LENGTH  # Huffman's own code would have 29
    assert is_complete(lengths)
    total = int((lengths.astype(np.int64) * np.array(fibonacci)).sum())
    assert best_total(fibonacci) < total < 1.01 * best_total(fibonacci)


def test_as_many_symbols_as_there_can_be() -> None:
    lengths = code_lengths(np.ones(2**14, np.int64))
    assert set(lengths.tolist()) == {14}
    symbols = np.random.default_rng(0).integers(0, 2**14, 3000)
    segments, stream = huffman_encode(symbols, lengths)
    assert huffman_decode(stream, segments, lengths, 3000).tolist() == symbols.tolist()


@pytest.mark.slow
@given(st.integers(2, 300), st.integers(1, 5000), st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_any_symbols_come_back(num_symbols: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(num_symbols, 0.1))
    symbols = rng.choice(num_symbols, count, p=shares)
    symbols[: min(2, count)] = [0, num_symbols - 1][: min(2, count)]
    counts = np.bincount(symbols, minlength=num_symbols)
    if np.count_nonzero(counts) < 2:
        counts[[0, num_symbols - 1]] += 1
    lengths = code_lengths(counts)
    segments, stream = huffman_encode(symbols, lengths)
    assert len(segments) == -(-count // SEGMENT)
    assert stream.nbytes == -(-int(segments.sum(dtype=np.int64)) // 8)
    assert huffman_decode(stream, segments, lengths, count).tolist() == symbols.tolist()


@pytest.mark.parametrize("lengths", [[1], [0, 0], [1, 2], [1, 1, 1], [2, 2, 2], [], [15] * 3])
def test_lengths_that_are_no_code(lengths: list[int]) -> None:
    assert not is_complete(np.array(lengths, np.uint8))


def test_segments_must_end_where_they_say() -> None:
    symbols = np.random.default_rng(0).integers(0, 5, 2500)
    lengths = code_lengths(np.bincount(symbols))
    segments, stream = huffman_encode(symbols, lengths)
    for change in ([1, 0, 0], [-1, 1, 0], [0, 0, 1]):
        with pytest.raises(WireError, match="does not have the stated length"):
            huffman_decode(stream, (segments + np.array(change)).astype("<u2"), lengths, 2500)


def test_segments_have_1024_symbols() -> None:
    # codes of one bit
    segments, stream = huffman_encode(np.zeros(2049, np.int64), np.array([1, 1], np.uint8))
    assert segments.tolist() == [1024, 1024, 1]
    assert len(stream) == 257


def test_the_longest_way_beyond_the_stream_is_refused() -> None:
    # no bits, but 1024 codes of 15 bits
    lengths = np.full(2**15, 15, np.uint8)
    assert is_complete(lengths)
    with pytest.raises(WireError):
        huffman_decode(np.empty(0, np.uint8), np.array([0], "<u2"), lengths, 1024)
