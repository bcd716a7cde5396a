"""Shards of sorted labels."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.learning.partitions.shards import Shards
from tests.learning.partitions.dealt import LABELS, lists, of, rng


class Unshuffled:
    """A generator that deals in order."""

    def permutation(self, count: int) -> np.ndarray:
        return np.arange(count)


def test_shards_by_hand() -> None:
    # sorted by label: examples 1 3 5 | 0 2 4; six shards of one each, two per client in order
    labels = np.array([1, 0, 1, 0, 1, 0])
    index = Shards(2).split(of(labels), 3, Unshuffled())  # type: ignore[arg-type]
    assert lists(index) == [[1, 3], [0, 5], [2, 4]]


def test_shards_bound_the_number_of_classes() -> None:
    # 600 examples, 20 shards of 30, 60 per class: no shard straddles two classes
    index = Shards(2).split(of(LABELS), 10, rng())
    classes = [len(np.unique(LABELS[index.of(client)])) for client in range(10)]
    assert max(classes) == 2
    assert index.sizes.tolist() == [60] * 10


def test_shards_need_an_example_each_and_the_minimum() -> None:
    with pytest.raises(ConfigError, match=r"with at least 3 examples each need 603"):
        Shards(3).split(of(LABELS), 201, rng())
    # 2 clients with 6 each would need 12
    with pytest.raises(ConfigError, match=r"there are 11"):
        Shards(2, min_examples=6).split(of(np.zeros(11, dtype=np.int64)), 2, rng())


def test_shards_refuse_a_client_that_uneven_shards_leave_too_small() -> None:
    # 15 examples in 6 shards of 2 3 2 3 2 3; the client that is dealt the first and the third has 4
    with pytest.raises(ConfigError, match="client 0 has 4 examples, below min_examples 5; take fewer clients"):
        Shards(2, min_examples=5).split(of(np.zeros(15, dtype=np.int64)), 3, Skewed())  # type: ignore[arg-type]


class Skewed:
    """A generator that deals the first and the third shard to the first client."""

    def permutation(self, count: int) -> np.ndarray:
        assert count == 6
        return np.array([0, 2, 1, 3, 4, 5])
