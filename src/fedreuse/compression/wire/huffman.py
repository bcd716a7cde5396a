"""Canonical Huffman codes in NumPy, decoded in many segments at once.

Only the lengths of the codes are sent. Among codes of one length the smaller symbol has the smaller code; a code is
written from its most significant bit. The stream is divided into segments of 1024 symbols, whose lengths in bits are
sent, so that all segments are decoded in parallel, one symbol of each per step.
"""

from __future__ import annotations

import numpy as np

from fedreuse.core.errors import WireError

__all__ = ["MAX_LENGTH", "SEGMENT", "code_lengths", "huffman_decode", "huffman_encode", "is_complete"]

MAX_LENGTH = 15
SEGMENT = 1024


def code_lengths(counts: np.ndarray) -> np.ndarray:
    """Return the lengths of the optimal prefix code of at most 15 bits (package-merge); 0 for unused symbols.

    Each of the 15 lists merges the leaves with packages: pairs of the items of the list below. Selecting the 2 n - 2
    cheapest items of the top list adds one bit to each selected leaf, and opens packages into the list below.
    """
    used = np.flatnonzero(counts)
    order = used[np.argsort(counts[used], kind="stable")]
    leaves = items = counts[order]
    lists = [np.ones(len(order), np.bool_)]
    for _ in range(MAX_LENGTH - 1):
        packages = items[: len(items) // 2 * 2].reshape(-1, 2).sum(1)
        joined = np.concatenate([leaves, packages])
        cheapest = np.argsort(joined, kind="stable")
        items = joined[cheapest]
        lists.append(cheapest < len(leaves))
    lengths = np.zeros(len(counts), np.uint8)
    num_taken = 2 * len(order) - 2
    for is_leaf in reversed(lists):
        num_leaves = int(np.count_nonzero(is_leaf[:num_taken]))
        lengths[order[:num_leaves]] += 1
        num_taken = 2 * (num_taken - num_leaves)
    return lengths


def is_complete(lengths: np.ndarray) -> bool:
    """Return whether the lengths form a complete prefix code, in which any bits can be decoded: Kraft's sum is 1."""
    used = lengths[lengths > 0].astype(np.int64)
    return len(used) > 1 and int((1 << (MAX_LENGTH - used)).sum()) == 1 << MAX_LENGTH


def huffman_encode(symbols: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of bits of each segment, and the stream."""
    order, widths = _canonical(lengths)
    # a canonical code is the start of its range of windows, without the bits below its length
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    codes = np.zeros(len(lengths), np.uint16)
    codes[order] = starts >> (MAX_LENGTH - lengths[order])
    wanted, code = lengths[symbols].astype(np.int64), codes[symbols]
    ends = np.cumsum(wanted)
    stream = np.zeros(int(ends[-1]), np.uint8)
    for bit in range(int(lengths.max())):  # counted from the end of each code
        has_bit = wanted > bit
        stream[ends[has_bit] - 1 - bit] = code[has_bit] >> bit & 1
    segments = np.add.reduceat(wanted, np.arange(0, len(symbols), SEGMENT))
    return segments.astype("<u2"), np.packbits(stream)


def huffman_decode(stream: np.ndarray, segments: np.ndarray, lengths: np.ndarray, count: int) -> np.ndarray:
    """Decode the symbols; raise WireError if a segment does not end with a whole code."""
    order, widths = _canonical(lengths)
    symbol_at = np.repeat(order, widths).astype(np.uint16)  # table: the symbol at the front of each 15-bit window
    length_at = lengths[symbol_at].astype(np.int64)
    ends = np.cumsum(segments, dtype=np.int64)
    at = ends - segments
    words = _words(stream)
    symbols = np.zeros((len(segments), SEGMENT), np.uint16)
    num_last = count - (len(segments) - 1) * SEGMENT
    for step in range(min(SEGMENT, count)):
        active = at if step < num_last else at[:-1]  # the last segment may be shorter; a view, which moves `at`
        window = words[active >> 3] >> (32 - MAX_LENGTH - (active & 7)) & ((1 << MAX_LENGTH) - 1)
        symbols[: len(active), step] = symbol_at[window]
        active += length_at[window]
    if (at != ends).any():
        raise WireError("a segment of Huffman codes does not have the stated length")
    return symbols.reshape(-1)[:count]


def _canonical(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the symbols by increasing code, and the number of the 2^15 windows that begin with each one's code."""
    used = np.flatnonzero(lengths)
    order = used[np.argsort(lengths[used], kind="stable")]
    return order, 1 << (MAX_LENGTH - lengths[order].astype(np.int64))


def _words(stream: np.ndarray) -> np.ndarray:
    """Return the 32 bits that start at each byte, padded as far as a malformed stream could lead."""
    padded = np.concatenate([stream, np.zeros(SEGMENT * MAX_LENGTH // 8 + 4, np.uint8)]).astype(np.int64)
    return padded[:-3] << 24 | padded[1:-2] << 16 | padded[2:-1] << 8 | padded[3:]
