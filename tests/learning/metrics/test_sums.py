"""Sums per output are exact for what float32 holds."""

from __future__ import annotations

import torch

from fedreuse.learning.metrics.sums import sums


def test_sums_are_in_double_precision() -> None:
    # 2^24 + 1 is no float32
    assert sums(torch.tensor([[2.0**24, 1.0], [1.0, 2.0]])) == ((2.0**24 + 1, 3.0),)
