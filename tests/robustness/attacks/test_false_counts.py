"""False counts: the claim, and what the bound on examples leaves of it."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.population import Population
from fedreuse.methods.averaging import Averaging
from fedreuse.robustness.attacks.false_counts import FalseCounts
from tests.robustness.attacks.played import bad_of, play, updates


def test_a_claim_buys_the_whole_mean_unless_it_is_bounded() -> None:
    sizes = np.array([100, 100, FalseCounts(times=1000).claim(100)])
    assert Population(sizes).ratio_weights([0, 1, 2])[2] == pytest.approx(1000 / 1002)
    assert Population(sizes, max_examples=100).ratio_weights([0, 1, 2])[2] == pytest.approx(1 / 3)


def test_the_update_is_turned_unless_only_the_count_is_false() -> None:
    attack = FalseCounts(0.1)
    (bad,) = bad_of(attack)
    honest = updates(play(Averaging()))[bad]
    assert np.array_equal(updates(play(Averaging(), attack))[bad], -honest)
    assert np.array_equal(updates(play(Averaging(), FalseCounts(0.1, factor=1.0)))[bad], honest)
