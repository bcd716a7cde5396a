"""Rice codes: positions come back, and cost what Golomb's formula says."""

from __future__ import annotations

from math import floor, log, log2, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.wire.rice import rice_decode, rice_encode, rice_width


def test_codes_by_hand() -> None:
    # 3 of 20: p = .15, b = 1 + floor(log2(.4812 / .1625)) = 2. Positions 1, 8, 10: gaps 1, 6, 1
    # unary of 0, 1, 0: 1 01 1 -> bits 1, 0, 1, 1 from the least significant = 13; low bits 1, 2, 1 = 1 + 2 * 4 + 1 * 16
    assert rice_width(3, 20) == 2
    unary, low = rice_encode(np.array([1, 8, 10]), 20)
    assert unary.tolist() == [13]
    assert low.tolist() == [25]
    assert rice_decode(unary, low, 3, 20).tolist() == [1, 8, 10]


@pytest.mark.slow
@given(st.integers(1, 5000), st.data())
@settings(max_examples=200, deadline=None)
def test_any_positions_come_back(size: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, size))
    positions = np.sort(np.random.default_rng(data.draw(st.integers(0, 99))).choice(size, count, replace=False))
    unary, low = rice_encode(positions, size)
    assert rice_decode(unary, low, count, size).tolist() == positions.tolist()
    assert unary[-1]  # no byte more than needed


def formula(p: float) -> float:
    """Expected bits per position, each taken with probability p."""
    b = 1 + floor(log2(log((sqrt(5) + 1) / 2 - 1) / log(1 - p)))
    return b + 1 / (1 - (1 - p) ** 2**b)


@pytest.mark.parametrize(("p", "bits"), [(0.2, 3.69), (0.05, 5.79), (0.01, 8.11), (1 / 400, 10.11)])
def test_random_masks_cost_what_the_formula_says(p: float, bits: float) -> None:
    assert formula(p) == pytest.approx(bits, abs=0.005)
    positions = np.flatnonzero(np.random.default_rng(7).random(2_000_000) < p)
    unary, low = rice_encode(positions, 2_000_000)
    assert 8 * (unary.nbytes + low.nbytes) / len(positions) == pytest.approx(bits, rel=0.01)


@pytest.mark.parametrize("count", [51, 80, 99, 100])
def test_more_than_half_is_a_bitmap(count: int) -> None:
    # b = 0: one bit per coordinate up to the last mark
    unary, low = rice_encode(np.arange(100 - count, 100), 100)
    assert rice_width(count, 100) == 0
    assert (unary.nbytes, low.nbytes) == (13, 0)
