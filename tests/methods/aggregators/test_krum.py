"""Krum and multi-Krum by hand and against their definition; whom they leave out is forgotten by a cache."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.method import Method
from fedreuse.methods.aggregators.krum import Krum, MultiKrum
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.gates.age_only import AgeOnly
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.methods.aggregators.numbers import NUMBER, ROUND, contributions, round_of, vectors
from tests.references import robust

FIVE = contributions(0.0, 1.0, 3.0, 4.0, 100.0)
"""f = 1, so 2 neighbours: scores 10, 5, 5, 10, 18625."""


def test_krum_by_hand() -> None:
    made = Krum(0.2).aggregate(FIVE, ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [1.0]  # of equal scores the first
    assert made.direction.buffers.values.tolist() == [1.0]
    assert made.statistics.weights == {1: 1.0}
    assert made.verdicts == dict.fromkeys((0, 2, 3, 4), "left out by krum")


def test_multi_krum_by_hand() -> None:
    made = MultiKrum(0.2).aggregate(FIVE, ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [2.0]
    assert made.statistics.weights == {1: 0.5, 2: 0.5}
    assert MultiKrum(0.2, keep=4).aggregate(FIVE, ROUND, NUMBER).verdicts == {4: "left out by multi_krum"}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_few_contributions_are_taken(number: int) -> None:
    made = MultiKrum(0.2).aggregate(contributions(*[5.0] * number), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [5.0]


def test_against_their_definition() -> None:
    matrix, shares = round_of(17, size=9)
    given, schema = vectors(matrix, shares)
    wanted, kept = robust.multi_krum(matrix, 1, 6)
    made = MultiKrum(0.2).aggregate(given, ROUND, schema)
    np.testing.assert_allclose(made.direction.weights.values, wanted, rtol=1e-12)
    assert made.statistics.weights.keys() == kept
    (chosen,) = robust.multi_krum(matrix, 1, 1)[1]
    np.testing.assert_array_equal(Krum(0.2).aggregate(given, ROUND, schema).direction.weights.values, matrix[chosen])


def test_an_infinite_distance_is_far() -> None:
    made = Krum(0.2).aggregate(contributions(1.0, 1.0, 2.0, 2.0, 1e300), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [1.0]


def test_whom_a_rule_leaves_out_is_forgotten_by_the_cache() -> None:
    method = DgFedReuse(gate=AgeOnly(max_age=9, quota=0.0), aggregate=MultiKrum(0.2, keep=4), mu=0.0)
    session = Session(QuadraticFederation.draw(5), Method(*method.halves("dense")), Setting(cohort=5)).advance(1)
    (left_out,) = (event.client for event in session.ledger.events if event.reason == "left out by multi_krum")
    second = session.advance(1).ledger.events[5:]
    assert [event.client for event in second if event.outcome == "fresh"] == [left_out]


def test_the_ranges() -> None:
    for rule, name in ((Krum, "krum"), (MultiKrum, "multi_krum")):
        with pytest.raises(ConfigError, match=rf"{name}\.bad must be in \[0, 0\.5\)"):
            rule(bad=0.5)
    with pytest.raises(ConfigError, match=r"multi_krum\.keep must be at least 1"):
        MultiKrum(keep=0)
