"""Inner-product manipulation, by hand and through a mean."""

from __future__ import annotations

import numpy as np

from fedreuse.methods.averaging import Averaging
from fedreuse.robustness.attacks.inner_product import InnerProduct
from tests.robustness.attacks.played import FEDERATION, play


def test_minus_a_multiple_of_the_honest_mean() -> None:
    honest = [np.float32([1, -2]), np.float32([3, 0])]
    assert InnerProduct(factor=0.5).collude(honest, 1).tolist() == [-1.0, 0.5]


def test_a_large_factor_turns_a_mean_round() -> None:
    start = FEDERATION.initial.weights.values
    clean = play(Averaging()).model.weights.values - start
    turned = play(Averaging(), InnerProduct(0.3, factor=20.0)).model.weights.values - start
    slowed = play(Averaging(), InnerProduct(0.3, factor=0.1)).model.weights.values - start
    assert np.dot(turned, clean) < 0 < np.dot(slowed, clean) < np.dot(clean, clean)
