"""Dirichlet label skew: by hand, redrawn, and at its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions import ClientIndex, Partition
from fedreuse.learning.partitions import proportions as module
from fedreuse.learning.partitions.dirichlet import Dirichlet
from tests.learning.partitions.dealt import LABELS, TEN_BY_SIX_THOUSAND, lists, of, rng


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


def split_with(partition: Partition, labels: list[int], num_clients: int, *draws: list[float]) -> ClientIndex:
    return partition.split(of(np.array(labels)), num_clients, FixedProportions(*draws))  # type: ignore[arg-type]


def test_dirichlet_by_hand() -> None:
    # class 0 is examples 0..3, cut at floor(4 * [.5, .8, 1]) = 2, 3, 4
    # class 1 is examples 4..8, cut at floor(5 * [.3, .5, 1]) = 1, 2, 5
    labels = [0, 0, 0, 0, 1, 1, 1, 1, 1]
    index = split_with(Dirichlet(1.0, min_examples=1), labels, 3, [0.5, 0.3, 0.2], [0.3, 0.2, 0.5])
    assert lists(index) == [[0, 1, 4], [2, 5], [3, 6, 7, 8]]
    assert index.redraws == 0


def test_dirichlet_draws_the_whole_partition_again_and_counts_it() -> None:
    labels = [0, 0, 0, 0]
    index = split_with(Dirichlet(1.0, min_examples=2), labels, 2, [1.0, 0.0], [0.25, 0.75], [0.5, 0.5])
    assert lists(index) == [[0, 1], [2, 3]]
    assert index.redraws == 2


def test_dirichlet_gives_up_after_max_redraws_and_tells_the_smallest_client() -> None:
    # three draws leave smallest clients of 0, 1 and 0 examples
    generator = FixedProportions([1.0, 0.0], [0.25, 0.75], [0.0, 1.0])
    with pytest.raises(ConfigError) as caught:
        Dirichlet(0.7, min_examples=2, max_redraws=2).split(of(np.zeros(4)), 2, generator)  # type: ignore[arg-type]
    assert not generator.draws
    message = str(caught.value)
    assert "alpha 0.7 over 2 clients (task.clients)" in message
    assert "below min_examples 2 in all 3 draws" in message
    assert "smallest client had at most 1 examples" in message
    assert "larger alpha, fewer clients, a smaller min_examples, or on_small: move" in message


def test_dirichlet_cuts_lose_nobody_to_rounding() -> None:
    # the cumulative sum of ten tenths is 0.99... at the eighth and the last: one example each all the same
    index = split_with(Dirichlet(1.0, min_examples=1), [0] * 10, 10, [0.1] * 10)
    assert index.sizes.tolist() == [1] * 10
    assert split_with(Dirichlet(1.0, min_examples=1), [0] * 10, 2, [0.5, 0.4]).sizes.tolist() == [5, 5]


def test_dirichlet_shuffles_a_class_before_it_is_cut() -> None:
    own = Dirichlet(1e9).split(of(np.zeros(100)), 2, rng()).of(0)
    assert own.max() > 60  # the first fifty would end at 49


@pytest.mark.parametrize("alpha", [1e12, 1.7e308])
def test_a_huge_alpha_is_even(alpha: float) -> None:
    # ten classes of 60 over 7 clients, each cut at floor(60 k / 7) = 8, 17, 25, 34, 42, 51, 60
    assert Dirichlet(alpha).split(of(LABELS), 7, rng()).sizes.tolist() == [80, 90, 80, 90, 80, 90, 90]


@pytest.mark.slow
def test_dirichlet_sizes_are_those_of_the_method_sheet() -> None:
    # 10 x 6000 over 50 clients at 0.5: smallest client 341 in the median, largest 2638
    draws = [Dirichlet(0.5).split(of(TEN_BY_SIX_THOUSAND), 50, rng(seed)).sizes for seed in range(40)]
    assert np.median([sizes.min() for sizes in draws]) == pytest.approx(341, rel=0.2)
    assert np.median([sizes.max() for sizes in draws]) == pytest.approx(2638, rel=0.1)


@pytest.mark.slow
def test_a_thousand_clients_at_a_hundredth_end_at_once_either_way() -> None:
    with pytest.raises(ConfigError, match=r"alpha 0\.01 over 1000 clients .* in all 101 draws"):
        Dirichlet(0.01).split(of(TEN_BY_SIX_THOUSAND), 1000, rng())
    index = Dirichlet(0.01, on_small="move").split(of(TEN_BY_SIX_THOUSAND), 1000, rng())
    assert index.sizes.min() == 10


def test_what_counting_rules_out_is_refused_before_any_draw() -> None:
    with pytest.raises(
        ConfigError, match=r"7000 clients .* need 70000, but there are 60000; take at most 6000 clients"
    ):
        Dirichlet(0.01).split(of(TEN_BY_SIX_THOUSAND), 7000, None)  # type: ignore[arg-type]


def test_the_work_of_redrawing_is_bounded_whatever_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    # 10 classes x 50 clients = 500 proportions a draw, so 2,600 pay for five redraws
    monkeypatch.setattr(module, "MAX_PROPORTIONS", 2600)
    with pytest.raises(ConfigError, match="in all 6 draws"):
        Dirichlet(0.001, max_redraws=10**9).split(of(LABELS), 50, rng())


def test_moving_leaves_a_good_partition_alone() -> None:
    moved = Dirichlet(0.5, on_small="move").split(of(TEN_BY_SIX_THOUSAND), 50, rng())
    assert moved.digest == Dirichlet(0.5).split(of(TEN_BY_SIX_THOUSAND), 50, rng()).digest
    assert moved.redraws == 0


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_redrawn_partitions_respect_the_minimum(seed: int) -> None:
    index = Dirichlet(0.3, min_examples=20, max_redraws=1000).split(of(LABELS), 5, rng(seed))
    assert index.sizes.min() >= 20


def test_alpha_decides_the_skew() -> None:
    def largest_class_share(alpha: float) -> float:
        index = Dirichlet(alpha, on_small="move").split(of(TEN_BY_SIX_THOUSAND), 20, rng())
        counts = [np.bincount(TEN_BY_SIX_THOUSAND[index.of(client)], minlength=10) for client in range(20)]
        return float(np.mean([count.max() / count.sum() for count in counts]))

    assert largest_class_share(0.05) > largest_class_share(0.5) > largest_class_share(50.0) > 0.1
