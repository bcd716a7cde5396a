"""Cross-entropy of flags, by hand."""

from __future__ import annotations

from math import log

import pytest
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.learning.losses.binary_cross_entropy import BinaryCrossEntropy


def test_by_hand() -> None:
    # log-odds 0: ln 2 for every flag; those that are set count three times with a weight of 3: (3 + 1) / 2 ln 2
    outputs, labels = torch.zeros(1, 2), torch.tensor([[True, False]])
    assert float(BinaryCrossEntropy()(outputs, labels)) == pytest.approx(log(2), rel=1e-6)
    assert float(BinaryCrossEntropy(3.0)(outputs, labels)) == pytest.approx(2 * log(2), rel=1e-6)


def test_the_weight_is_above_zero() -> None:
    with pytest.raises(ConfigError, match=r"task\.loss\.positive_weight must be above 0, got 0"):
        BinaryCrossEntropy(0.0)
