"""Noise from a key: normal, repeated with the key alone, and another for every purpose and round."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.noise import normal_numbers


def test_the_numbers_are_standard_normal() -> None:
    numbers = normal_numbers(b"key", "test", 1, 200_001)
    assert len(numbers) == 200_001
    assert abs(numbers.mean()) < 4 / len(numbers) ** 0.5
    assert abs(numbers.std() - 1) < 4 / (2 * len(numbers)) ** 0.5
    assert abs(np.mean(np.abs(numbers) > 1.959964) - 0.05) < 4 * (0.05 * 0.95 / len(numbers)) ** 0.5
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 4 / len(numbers) ** 0.5
    assert abs(np.corrcoef(numbers[:100_000], numbers[100_001:])[0, 1]) < 4 / 100_000**0.5  # halves of pairs


@pytest.mark.parametrize("other", [(b"yek", "test", 1), (b"key", "tset", 1), (b"key", "test", 2), (b"ke", "ytest", 1)])
def test_key_purpose_and_round_all_count(other: tuple[bytes, str, int]) -> None:
    mine = normal_numbers(b"key", "test", 1, 8)
    assert np.array_equal(mine, normal_numbers(b"key", "test", 1, 8))
    assert not np.isin(normal_numbers(*other, 8), mine).any()


def test_a_cohort_draws_from_its_secret_and_without_one_from_the_seed() -> None:
    public, hidden = Cohort(3, (0, 1), 7), Cohort(3, (0, 1), 7, secret=b"secret")
    assert np.array_equal(public.noise("test", 4), normal_numbers(b"seed 7", "test", 3, 4))
    assert np.array_equal(hidden.noise("test", 4), normal_numbers(b"secret", "test", 3, 4))
    assert "secret" not in repr(hidden)
