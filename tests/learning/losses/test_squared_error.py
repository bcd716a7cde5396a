"""Squared error, by hand."""

from __future__ import annotations

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.losses.squared_error import SquaredError


def test_by_hand() -> None:
    # errors 1 and -3: (1 + 9) / 2; labels may be double, outputs a column
    assert float(SquaredError()(torch.tensor([[2.0], [0.0]]), torch.tensor([1.0, 3.0], dtype=torch.float64))) == 5.0


def test_as_many_outputs_as_numbers() -> None:
    with pytest.raises(ConfigError, match="it gives 3 outputs per example, but there are 1 numbers to predict"):
        SquaredError()(torch.zeros(2, 3), torch.zeros(2))
