"""Mean absolute error, by hand (against scikit-learn: test_r2)."""

from __future__ import annotations

import torch

from fedreuse.learning.metrics.mae import Mae


def test_by_hand() -> None:
    # errors 3 and -4: 3.5
    assert Mae().value(Mae()(torch.tensor([[3.0], [-4.0]]), torch.zeros(2)), 2) == 3.5
