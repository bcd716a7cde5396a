"""Budgets by line: a division by hand, the sum that holds, slow lines, and unknown visits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.methods.line_budgets import Messages, longest_messages


def test_a_division_by_hand() -> None:
    # rates 8,000 and 32,000 bit/s carry 1,000 and 4,000 bytes in a second; 10 messages of each make 50,000 bytes.
    # 1,000 and 4,000 are rounded down to multiples of 32 and 128, so that a little more time
    # fits: up to 1,024 / 1,000 s, at which both would grow
    lengths, seconds = longest_messages([8_000, 32_000], Messages(20, [10, 10], 10), 50_000, least=10, most=10_000)
    assert lengths == (992, 3968)
    assert seconds == pytest.approx(1.024)


def test_slow_lines_send_the_least_and_fast_ones_at_most_everything() -> None:
    lengths, seconds = longest_messages([1.0, 1e4, 1e9], Messages(3, [1, 1, 1], 1), 3_000, least=100, most=2_048)
    assert lengths[0] == 100
    assert lengths[2] == 2_048
    assert 100 < lengths[1] <= 3_000 - 100 - 2_048
    assert seconds < 8 * 100  # the slowest takes longer than the others
    everything, _ = longest_messages([1e3, 1e4], Messages(2, [1, 1], 1), 1e9, least=1, most=512)
    assert everything == (512, 512)


def test_unknown_visits_count_as_the_dearest() -> None:
    # 25 messages, at most 10 of one client: 10 of each of the two longest, and 5 of the third
    assert Messages(25, None, 10).most_bytes(np.array([1, 7, 3, 100])) == 10 * 100 + 10 * 7 + 5 * 3
    assert Messages(20, None, 10).most_bytes(np.array([1, 7, 3])) == 100
    assert Messages(25, (0, 1, 2), 10).most_bytes(np.array([5, 7, 3])) == 13


@given(
    st.lists(st.floats(1e3, 1e8), min_size=1, max_size=12),
    st.lists(st.integers(0, 20), min_size=12, max_size=12),
    st.integers(100, 5_000),
    st.booleans(),
)
def test_the_sum_holds_and_faster_lines_never_get_less(
    rates: list[float], visits: list[int], average: int, is_known: bool
) -> None:
    counts = [max(1, number) for number in visits[: len(rates)]]
    messages = Messages(sum(counts), counts if is_known else None, max(counts))
    total = sum(counts) * average
    lengths, _ = longest_messages(rates, messages, total, least=100, most=4_096)
    assert messages.most_bytes(np.array(lengths)) <= total
    assert sum(n * length for n, length in zip(counts, lengths, strict=True)) <= total
    assert [length for _, length in sorted(zip(rates, lengths, strict=True))] == sorted(lengths)
    assert all(100 <= length <= 4_096 for length in lengths)
