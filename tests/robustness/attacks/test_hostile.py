"""A method under attack: only bad clients lie, all methods take it, and a resumed run tells the same lies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.core.method import methods
from fedreuse.engine.executors.serial import Serial
from fedreuse.methods.averaging import Averaging
from fedreuse.robustness.attacks.alie import Alie
from fedreuse.robustness.attacks.attack import Attack
from fedreuse.robustness.attacks.free_rider import FreeRider
from fedreuse.robustness.attacks.hostile import under_attack
from fedreuse.robustness.attacks.inner_product import InnerProduct
from fedreuse.robustness.attacks.sign_flip import SignFlip
from fedreuse.testing.cases import Case
from fedreuse.testing.quadratic import Session, Setting
from tests.conformance.cases import CASES
from tests.robustness.attacks.played import FEDERATION, bad_of, play, same, updates

FIRST_CASES = list({case.method: case for case in CASES}.values())
ATTACKS = [SignFlip(0.3), Alie(0.3, z=1.5), FreeRider(0.3, mode="replay")]


def test_honest_clients_say_what_they_would_have_said() -> None:
    attack = SignFlip(0.3)
    honest, lied = updates(play(Averaging())), updates(play(Averaging(), attack))
    for client, update in honest.items():
        assert np.array_equal(lied[client], -update if client in bad_of(attack) else update)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: type(attack).__name__)
@pytest.mark.parametrize("case", FIRST_CASES, ids=lambda case: case.method)
def test_every_method_takes_it_and_replays_it_after_a_crash(case: Case, attack: Attack) -> None:
    method = under_attack(case.build(), attack, bad_of(attack))
    whole = Session(FEDERATION, method, Setting(cohort=10)).advance(3)
    strict = Setting(cohort=10, executor=Serial("strict"))
    resumed = Session(FEDERATION, method, strict).advance(2).resumed().advance(1)
    assert same(whole.model, resumed.model)
    if method.server.is_asynchronous and isinstance(attack, FreeRider):
        return  # in three rounds no client answers twice, so that nothing is replayed
    honest = Session(FEDERATION, case.build(), Setting(cohort=10)).advance(3)
    assert not same(whole.model, honest.model)


def test_every_registered_method_is_attacked_here() -> None:
    assert {case.method for case in FIRST_CASES} == set(methods.names())


def test_colluders_know_the_bound_and_stay_within_it() -> None:
    attack = InnerProduct(0.2, factor=1000.0)
    clean = play(Averaging(), max_norm=100.0)
    bounded = play(Averaging(), attack, max_norm=100.0)
    free = play(Averaging(), attack)
    moved = [np.linalg.norm(each.model.weights.values - clean.model.weights.values) for each in (bounded, free)]
    assert 0 < moved[0] <= 0.2 * 2 * 100.0 * FEDERATION.examples.max() / FEDERATION.examples.mean()
    assert moved[1] > moved[0]


def test_colluders_without_anybody_to_learn_from_say_what_they_have() -> None:
    attack = replace(Alie(), bad=0.9)
    bad = frozenset(range(10))
    method = under_attack(play(Averaging()).method, attack, bad)
    alone = Session(FEDERATION, method, Setting(cohort=10)).advance(1)
    assert same(alone.model, play(Averaging()).model)
