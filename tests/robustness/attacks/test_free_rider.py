"""Free riders: what they save, what the age limit still makes them do, and that a replay is the first update again."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.methods.averaging import Averaging
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.gates.proxy import Proxy
from fedreuse.robustness.attacks.free_rider import FreeRider
from tests.robustness.attacks.played import bad_of, play, updates


@pytest.mark.parametrize("max_age", [2, 4])
def test_a_score_of_zero_saves_all_work_but_one_training_in_every_age_limit(max_age: int) -> None:
    attack = FreeRider(0.1)
    (bad,) = bad_of(attack)
    config = DgFedReuse(gate=Proxy(max_age=max_age, quota=0.0), mu=0.0)
    session = play(config, attack, rounds=3 * max_age)
    worked = [row.work.training_steps > 0 for row in session.ledger.rows if row.client == bad and row.direction == "up"]
    scored = [row.work.proxy_gradients for row in session.ledger.rows if row.client == bad and row.kind == "score"]
    assert sum(worked) == 3  # once in every max_age rounds
    assert not any(scored)  # a score costs it nothing
    scores = [event.score for event in session.ledger.events if event.client == bad and event.outcome == "reused"]
    assert set(scores) == {0.0}


def test_a_replay_is_the_first_update_for_ever_and_costs_nothing() -> None:
    attack = FreeRider(0.1, mode="replay")
    (bad,) = bad_of(attack)
    first, third = play(Averaging(), attack), play(Averaging(), attack, rounds=3)
    assert np.array_equal(updates(first)[bad], updates(play(Averaging()))[bad])
    assert np.array_equal(updates(third)[bad], updates(first)[bad])
    steps = [row.work.training_steps for row in third.ledger.rows if row.client == bad and row.direction == "up"]
    assert steps[0] > 0
    assert steps[1:] == [0, 0]
