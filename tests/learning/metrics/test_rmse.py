"""Root of the mean squared error, by hand (against scikit-learn: test_r2)."""

from __future__ import annotations

import torch

from fedreuse.learning.metrics.rmse import Rmse


def test_by_hand() -> None:
    # errors 3 and 4: sqrt(25 / 2); with a second output that is right, half of it
    outputs, labels = torch.tensor([[3.0, 1.0], [4.0, 1.0]]), torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    assert Rmse().value(Rmse()(outputs[:, 0], labels[:, 0]), 2) == 12.5**0.5
    assert Rmse().value(Rmse()(outputs, labels), 2) == 12.5**0.5 / 2
