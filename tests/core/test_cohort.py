"""Cohorts: who is selected, and the round's streams."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.randomness import stream

COHORT = Cohort(round_number=3, clients=(1, 4), seed=7, look_ahead=((0, 2),))


def test_streams_are_those_of_seed_purpose_round_and_client() -> None:
    assert COHORT.rng("method").random() == stream(7, "method", 3).random()
    assert COHORT.rng_of("method", 4).random() == stream(7, "method", 3, 4).random()


def test_every_part_of_the_key_changes_the_draw() -> None:
    draws = [
        COHORT.rng("method").random(),
        COHORT.rng("gate").random(),
        COHORT.rng_of("method", 1).random(),
        COHORT.rng_of("method", 4).random(),
        Cohort(4, (1, 4), seed=7).rng("method").random(),
        Cohort(3, (1, 4), seed=8).rng("method").random(),
    ]
    assert len(set(draws)) == len(draws)


def test_asking_twice_gives_the_same_draws_whatever_came_between() -> None:
    first = COHORT.rng("method").random(3)
    COHORT.rng("gate").random(100)
    assert (COHORT.rng("method").random(3) == first).all()


def test_selected_clients_do_not_shift_the_streams() -> None:
    other = Cohort(3, (0, 1, 2), seed=7)
    assert other.rng_of("quant", 1).random() == COHORT.rng_of("quant", 1).random()


def test_look_ahead_is_empty_unless_given_and_the_value_is_frozen() -> None:
    assert Cohort(1, (0,), seed=0).look_ahead == ()
    assert Cohort(3, (1, 4), 7, ((0, 2),)).look_ahead == COHORT.look_ahead == ((0, 2),)
    with pytest.raises(FrozenInstanceError):
        COHORT.round_number = 4  # type: ignore[misc]
