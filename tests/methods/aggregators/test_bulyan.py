"""Bulyan by hand, against its definition, and where Krum alone accepts one far coordinate."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.aggregators.bulyan import Bulyan
from fedreuse.methods.aggregators.krum import Krum
from tests.methods.aggregators.numbers import NUMBER, ROUND, contributions, round_of, vectors
from tests.references import robust


def test_by_hand() -> None:
    # f = 1: Krum selects 2, 3, 1, 4, 0 (of equal scores the first); nearest to their median 2 are 1, 2, 3
    made = Bulyan(0.15).aggregate(contributions(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 100.0), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [2.0]
    assert made.direction.buffers.values.tolist() == pytest.approx([2.0], rel=1e-15)
    assert made.statistics.weights == dict.fromkeys(range(5), 0.2)
    assert made.verdicts == dict.fromkeys((5, 6), "left out by bulyan")


def test_of_values_equally_near_the_smaller_counts() -> None:
    # f = 1: Krum selects 1, 3, 0; one value is kept: the median 1
    made = Bulyan(0.2).aggregate(contributions(0.0, 1.0, 3.0, 4.0, 100.0), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [1.0]
    # f = 1: Krum selects 0, 0, 4, 4; two are kept of four equally far from the median 2
    made = Bulyan(0.2).aggregate(contributions(0.0, 0.0, 4.0, 4.0, 100.0, -100.0), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [0.0]


@pytest.mark.parametrize(("size", "num_bad"), [(5, 1), (9, 1), (11, 2), (16, 3)])
def test_against_its_definition(size: int, num_bad: int) -> None:
    matrix, shares = round_of(19, size=size)
    given, schema = vectors(matrix, shares)
    wanted, selected = robust.bulyan(matrix, num_bad)
    made = Bulyan(0.2).aggregate(given, ROUND, schema)
    np.testing.assert_allclose(made.direction.weights.values, wanted, rtol=1e-12)
    assert made.statistics.weights.keys() == selected


def test_without_bad_clients_it_is_the_plain_mean() -> None:
    matrix, shares = round_of(23)
    given, schema = vectors(matrix, shares)
    made = Bulyan(0.0).aggregate(given, ROUND, schema)
    np.testing.assert_allclose(made.direction.weights.values, matrix.mean(axis=0), rtol=1e-12)
    assert made.verdicts == {}


def test_one_far_coordinate_that_krum_accepts() -> None:
    honest = np.random.default_rng(3).choice([-1.0, 1.0], size=(8, 400))
    hostile = np.zeros((1, 400))  # nearer to each honest update than they are to one another ...
    hostile[0, 0] = 15.0  # ... although one coordinate is far away
    given, schema = vectors(np.concatenate([honest, hostile]), np.full(9, 1 / 9))
    assert Krum(0.15).aggregate(given, ROUND, schema).direction.weights.values[0] == 15.0
    assert abs(Bulyan(0.15).aggregate(given, ROUND, schema).direction.weights.values[0]) <= 1.0


def test_the_range() -> None:
    with pytest.raises(ConfigError, match=r"bulyan\.bad must be in \[0, 0\.25\)"):
        Bulyan(bad=0.25)
