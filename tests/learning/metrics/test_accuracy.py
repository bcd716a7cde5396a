"""Accuracy, by hand."""

from __future__ import annotations

import torch

from fedreuse.learning.metrics.accuracy import Accuracy


def test_accuracy_counts_right_answers() -> None:
    scores = torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    assert Accuracy()(scores, torch.tensor([1, 1, 1, 0])) == 3.0
    assert Accuracy().value(3.0, 4) == 0.75
