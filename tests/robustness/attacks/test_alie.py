"""A little is enough: the published shift, and mean minus z standard deviations by hand."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from fedreuse.robustness.attacks.alie import Alie, published_z


def test_the_published_shift() -> None:
    # n = 50, f = 24: s = 26 - 24 = 2 of 26 honest ones, so Phi(z) = 24 / 26 (the paper's example)
    assert published_z(50, 24) == pytest.approx(NormalDist().inv_cdf(24 / 26))
    assert published_z(10, 2) == 0.0  # s = 4 of 8: no shift lies nearer to the mean than half of them
    assert published_z(10, 9) == 0.0  # one honest client
    assert published_z(10, 6) == pytest.approx(NormalDist().inv_cdf(3 / 4))


def test_mean_minus_z_standard_deviations() -> None:
    honest = [np.float32([1, 10]), np.float32([3, 10])]  # means 2 and 10, deviations 1 and 0
    assert Alie(z=1.5).collude(honest, 1).tolist() == [0.5, 10.0]
