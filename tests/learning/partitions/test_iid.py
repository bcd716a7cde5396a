"""No skew."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.learning.partitions.iid import Iid
from tests.learning.partitions.dealt import LABELS, of, rng


def test_iid_sizes_differ_by_one_at_most() -> None:
    # 11 over 4: ends at floor(11 k / 4) = 2, 5, 8, 11
    assert Iid().split(of(np.zeros(11, dtype=np.int64)), 4, rng()).sizes.tolist() == [2, 3, 3, 3]


def test_iid_ignores_labels() -> None:
    other = np.zeros_like(LABELS)
    assert Iid().split(of(LABELS), 7, rng()).digest == Iid().split(of(other), 7, rng()).digest


@pytest.mark.slow
def test_a_million_clients() -> None:
    labels = np.arange(1_200_000) % 10
    index = Iid().split(of(labels), 1_000_000, rng())
    assert index.num_clients == 1_000_000
    assert set(np.unique(index.sizes).tolist()) == {1, 2}
