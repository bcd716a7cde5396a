"""Scaled updates, and the score that keeps a poisoned cache in use: how long, the age limit says."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.methods.averaging import Averaging
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.gates.proxy import Proxy
from fedreuse.robustness.attacks.scaled import Scaled
from tests.robustness.attacks.played import bad_of, play, updates


def test_bad_clients_multiply() -> None:
    attack = Scaled(0.1, factor=-20.0)
    (bad,) = bad_of(attack)
    expected = updates(play(Averaging()))[bad] * np.float32(-20)
    np.testing.assert_allclose(updates(play(Averaging(), attack))[bad], expected, rtol=1e-6)


@pytest.mark.parametrize("max_age", [2, 3, 6])
def test_a_poisoned_update_counts_for_as_long_as_the_age_limit_says(max_age: int) -> None:
    attack = Scaled(0.1, factor=-50.0, score=0.0)
    (bad,) = bad_of(attack)
    config = DgFedReuse(gate=Proxy(max_age=max_age, quota=0.0), mu=0.0)
    session = play(config, attack, rounds=2 * max_age + 1)
    fates = [event.outcome for event in session.ledger.events if event.client == bad]
    assert fates == [*(["fresh"] + ["reused"] * (max_age - 1)) * 2, "fresh"]
