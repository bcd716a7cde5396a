"""Dirichlet shares at their limits, and how small clients are completed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions import proportions as module
from fedreuse.learning.partitions.dirichlet import Dirichlet
from tests.learning.partitions.dealt import of, rng


class FixedProportions:
    """A generator whose Dirichlet draws are given, and which shuffles nothing."""

    def __init__(self, *draws: list[float]) -> None:
        self.draws = [np.array(draw) for draw in draws]

    def dirichlet(self, alpha: np.ndarray) -> np.ndarray:
        draw = self.draws.pop(0)
        assert len(draw) == len(alpha)
        return draw

    def permutation(self, members: np.ndarray) -> np.ndarray:
        return members

    def integers(self, high: int) -> int:
        return high - 1


@pytest.mark.parametrize("draw", [[float("nan")] * 3, [0.0] * 3])
def test_a_draw_that_underflows_gives_the_class_to_one_client(draw: list[float]) -> None:
    partition = Dirichlet(0.01, min_examples=1, max_redraws=0)
    with pytest.raises(ConfigError, match="had at most 0 examples"):
        partition.split(of([0] * 6), 3, FixedProportions(draw))  # type: ignore[arg-type]
    assert module._proportions(0.01, 3, FixedProportions(draw)).tolist() == [0, 0, 1]  # type: ignore[arg-type]
    assert module._proportions(5.0, 3, FixedProportions(draw)).tolist() == [1 / 3] * 3  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [5e-324, 1e-310, 1e-200, 1e-9])
def test_a_vanishing_alpha_gives_each_class_to_one_client_without_preference(alpha: float) -> None:
    # 1,000 draws over 4 clients: 250 each, standard deviation 13.7
    generator = rng()
    alone = [module._proportions(alpha, 4, generator) for _ in range(1000)]
    assert all(draw.max() == pytest.approx(1) for draw in alone)
    assert np.abs(np.bincount([draw.argmax() for draw in alone], minlength=4) - 250).max() < 5 * 13.7


def naive_move(sizes: list[int], min_examples: int) -> list[int]:
    left = list(sizes)
    for _ in range(sum(max(min_examples - size, 0) for size in sizes)):
        left[left.index(max(left))] -= 1
    return left


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=2, max_size=12), st.integers(1, 8))
def test_moving_takes_one_by_one_from_the_largest(sizes: list[int], min_examples: int) -> None:
    if sum(sizes) < min_examples * len(sizes):
        sizes[0] += min_examples * len(sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    moved = module.move_to_small(owners, len(sizes), min_examples)
    after = np.bincount(moved, minlength=len(sizes))
    expected = np.maximum(naive_move(sizes, min_examples), np.minimum(min_examples, after))
    assert after.tolist() == expected.tolist()
    assert after.min() >= min_examples
    stayed_or_small = (moved == owners) | (np.array(sizes)[moved] < min_examples)
    assert stayed_or_small.all()


def test_moving_by_hand() -> None:
    # sizes 6, 1, 5 with 3 wanted: client 0, the largest, gives one; then 0 and 2 have 5 each, and 0 gives
    # again as the lower id. Its two are evenly spaced over its six: the first and the fourth.
    owners = np.array([0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2])
    assert module.move_to_small(owners, 3, 3).tolist() == [1, 0, 0, 1, 0, 0, 1, 2, 2, 2, 2, 2]
