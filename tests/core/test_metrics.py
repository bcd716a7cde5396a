"""Metrics: states of parts that add up to the state of the whole, in every form that a message can carry."""

from __future__ import annotations

from functools import reduce
from math import isnan

import msgpack
import pytest

from fedreuse.core.errors import RunError
from fedreuse.core.metrics import Metrics

NOTHING = Metrics(0, 0.0, 0.0)


def test_means_per_example() -> None:
    metrics = Metrics(examples=8, loss=4.0, score=6.0)
    assert (metrics.mean_loss, metrics.mean_score) == (0.5, 0.75)


def test_nobody_has_no_mean() -> None:
    assert isnan(Metrics(0, 0.0, 0.0).mean_score)
    assert isnan(Metrics(0, 0.0, 0.0).mean_loss)


def test_the_longest_numbers_of_a_structure() -> None:
    held = Metrics(2, 1.0, (1, 0), ((3,), 2))
    assert held.longest.form == held.form
    assert len(msgpack.packb(held.longest.to_values())) - len(msgpack.packb(held.to_values())) == 8 * 5


def test_states_are_added_entry_by_entry() -> None:
    parts = [Metrics(2, 1.0, (1, (2, 3)), (1.5, (4,))), Metrics(3, 0.5, (10, (20, 30)), (0.5, (40,)))]
    assert reduce(Metrics.__add__, parts, NOTHING) == Metrics(5, 1.5, (11, (22, 33)), (2.0, (44,)))
    assert parts[0] + NOTHING == parts[0]


@pytest.mark.parametrize("other", [Metrics(1, 0.0, (1,)), Metrics(1, 0.0, (1, 2, 3)), Metrics(1, 0.0, 5.0)])
def test_states_of_two_forms_are_no_sum(other: Metrics) -> None:
    one = Metrics(1, 0.0, (1, 2))
    assert one.form != other.form
    with pytest.raises(RunError, match="metric differ in structure"):
        one + other


def test_three_numbers_travel_and_states_only_where_there_are_any() -> None:
    assert Metrics(2, 1.0, 1.0).to_values() == {"examples": 2, "loss": 1.0, "score": 1.0}
    held = Metrics(2, 1.0, (1, 0), ((3,), 2))
    assert Metrics(**held.to_values()) == held  # type: ignore[arg-type]
