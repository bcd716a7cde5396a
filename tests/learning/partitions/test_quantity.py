"""Quantity skew: sizes differ, labels do not."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions.quantity import Quantity
from tests.learning.partitions.dealt import LABELS, TEN_BY_SIX_THOUSAND, lists, of, rng


class Fixed:
    """A generator whose draw is given, and which shuffles nothing."""

    def dirichlet(self, alpha: np.ndarray) -> np.ndarray:
        return np.array([0.5, 0.1, 0.4])

    def permutation(self, count: int) -> np.ndarray:
        return np.arange(count)


def test_quantity_by_hand() -> None:
    # ten examples cut at floor(10 * [.5, .6, 1]) = 5, 6, 10
    index = Quantity(1.0, min_examples=1).split(of([0, 1] * 5), 3, Fixed())  # type: ignore[arg-type]
    assert lists(index) == [[0, 1, 2, 3, 4], [5], [6, 7, 8, 9]]


def test_sizes_differ_and_the_mix_of_labels_does_not() -> None:
    index = Quantity(0.5).split(of(TEN_BY_SIX_THOUSAND), 20, rng())
    assert index.sizes.max() > 10 * index.sizes.min()
    largest = int(index.sizes.argmax())
    shares = np.bincount(TEN_BY_SIX_THOUSAND[index.of(largest)]) / index.sizes[largest]
    assert np.abs(shares - 0.1).max() < 0.02  # 5 standard deviations at 6,000 examples


def test_nobody_is_too_small_either_way() -> None:
    assert Quantity(0.1, min_examples=5, on_small="move").split(of(LABELS), 30, rng()).sizes.min() == 5
    with pytest.raises(ConfigError, match=r"quantity with alpha 0\.01 over 30 clients .* in all 101 draws"):
        Quantity(0.01, min_examples=5).split(of(LABELS), 30, rng())
