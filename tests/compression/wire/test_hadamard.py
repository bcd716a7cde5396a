"""The transform against the matrix it stands for, and signs that never change."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.wire.hadamard import drawn_signs, hadamard


def matrix(length: int) -> np.ndarray:
    """H, entry by entry: minus where the positions share an odd number of bits."""
    return np.array([[(-1) ** (i & j).bit_count() for j in range(length)] for i in range(length)])


@pytest.mark.parametrize("length", [1, 2, 8, 64])
@pytest.mark.parametrize("count", [1, 3])
def test_it_is_the_matrix(length: int, count: int) -> None:
    columns = np.random.default_rng(length).integers(-99, 99, (length, count)).astype(np.int32)
    wanted = matrix(length) @ columns
    assert hadamard(columns.copy()).tolist() == wanted.tolist()
    assert hadamard(hadamard(columns.copy())).tolist() == (length * columns).tolist()


def test_lengths_stay_but_for_the_root_of_their_number() -> None:
    columns = np.random.default_rng(0).normal(size=(256, 5))
    wanted = np.sum(columns**2, axis=0)
    np.testing.assert_allclose(np.sum(hadamard(columns) ** 2, axis=0), 256 * wanted, rtol=1e-12)


def test_signs_follow_from_the_seed_alone() -> None:
    # pinned: another NumPy must draw the same, or the two ends of a link would disagree
    assert drawn_signs(np.uint64(7), 12).tolist() == PINNED
    assert drawn_signs(np.uint64(7), 100)[:12].tolist() == PINNED
    assert drawn_signs(np.uint64(7), 0).tolist() == []
    word = int(np.random.PCG64(7).random_raw())
    assert [word >> place & 1 for place in range(12)] == PINNED
    assert drawn_signs(np.uint64(3), 100_000).mean() == pytest.approx(0.5, abs=0.008)  # five deviations


PINNED = [1, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1]
