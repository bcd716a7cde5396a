"""Arrivals for FLSim: stored updates, ages and models fit the equation of FedBuff; with FLSim, its models, too."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.fedbuff import BUFFER, EXPONENT, SERVER_LR, STEPS, compare, record


def test_recorded_arrivals_follow_the_equation(tmp_path: Path) -> None:
    record(str(tmp_path / "arrivals.npz"))
    with np.load(tmp_path / "arrivals.npz") as stored:
        models, updates, ages = stored["models"], stored["updates"], stored["ages"]
    assert len(ages) == STEPS * BUFFER
    assert ages.max() >= 2
    discounted = ((1.0 + ages[:, None]) ** -EXPONENT * updates).reshape(STEPS, BUFFER, -1)
    np.testing.assert_allclose(np.diff(models, axis=0), SERVER_LR * discounted.mean(axis=1), atol=1e-12)


@pytest.mark.skipif(find_spec("flsim") is None, reason="FLSim 0.1.0 needs Python 3.10 or older")
def test_flsim_has_the_same_models(tmp_path: Path) -> None:
    record(str(tmp_path / "arrivals.npz"))
    assert compare(str(tmp_path / "arrivals.npz"))[0] < 1e-12
