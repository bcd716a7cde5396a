"""Time-ordered arrival: the earliest to client 0."""

from __future__ import annotations

import numpy as np

from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.time_ordered import TimeOrdered
from tests.learning.partitions.dealt import lists, of, rng


def test_by_time_and_by_place_among_equals() -> None:
    # in order of time: examples 3, 1 and 4 (both at 2, as stored), 0, 2
    examples = Examples(np.zeros(5, np.int64), times=np.array([5.0, 2.0, 9.0, 1.0, 2.0]))
    assert lists(TimeOrdered().split(examples, 2, rng())) == [[1, 3], [0, 2, 4]]


def test_without_times_as_stored() -> None:
    assert lists(TimeOrdered().split(of(range(5)), 2, rng())) == [[0, 1], [2, 3, 4]]
