"""Sums per output are exact for what float32 holds."""

from __future__ import annotations

from math import isnan, sqrt

import torch

from fedreuse.learning.metrics.sums import mean_error, sums


def test_sums_are_in_double_precision() -> None:
    # 2^24 + 1 is no float32
    assert sums(torch.tensor([[2.0**24, 1.0], [1.0, 2.0]])) == ((2.0**24 + 1, 3.0),)


def test_an_error_is_the_mean_over_outputs_of_the_mean_over_examples() -> None:
    state = ((8.0, 2.0),)
    assert mean_error(state, 2) == 2.5  # (4 + 1) / 2
    assert mean_error(state, 2, sqrt) == 1.5  # (2 + 1) / 2
    assert isnan(mean_error(state, 0))
