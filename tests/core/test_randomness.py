"""Streams: the same key the same draws, another key other draws, today and tomorrow."""

from __future__ import annotations

from itertools import product

import numpy as np

from fedreuse.core.randomness import deferred, stream, stream_seed


def test_a_stream_starts_again() -> None:
    assert stream(1, "batches", 2, 3).random(5).tolist() == stream(1, "batches", 2, 3).random(5).tolist()


def test_every_part_of_the_key_counts() -> None:
    keys = list(product((0, 1, 12), ("batches", "augment"), (0, 1, 11), (-1, 0, 1)))
    seeds = {stream_seed(*key) for key in keys}
    assert len(seeds) == len(keys)
    # numbers are kept apart: (1, round 11) is not (11, round 1)
    assert stream_seed(1, "a", 11, 1) != stream_seed(11, "a", 1, 1)
    assert stream_seed(1, "a", 1, 11) != stream_seed(1, "a", 11, 1)


def test_draws_are_pinned() -> None:
    # a change here changes every result of every run: it needs a line under Numerics in the changelog
    assert stream_seed(101, "schedule", 1) == 0x347F5A805F2F385066A23EF241632857
    assert stream(101, "schedule", 1).integers(0, 1000, 5).tolist() == [573, 106, 248, 425, 461]


def test_one_stream_does_not_shift_another() -> None:
    first = stream(5, "a")
    first.random(1000)
    assert stream(5, "b").random() == stream(5, "b").random()


def test_a_deferred_stream_draws_the_same_numbers_and_is_made_once() -> None:
    made: list[int] = []

    def make() -> np.random.Generator:
        made.append(1)
        return stream(7, "noise", 2, 3)

    rng = deferred(make)
    assert not made
    assert [rng.random(), rng.random()] == stream(7, "noise", 2, 3).random(2).tolist()
    assert made == [1]
