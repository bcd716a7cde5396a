"""The geometric median by hand, against its definition, and where one update is huge."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.aggregators.geometric_median import GeometricMedian
from tests.methods.aggregators.numbers import NUMBER, ROUND, contributions, round_of, vectors
from tests.references import robust


def test_one_step_by_hand() -> None:
    # median 2 of 0, 2, 6; pulls 1/2, 1/1, 1/4 with smoothing 1: (0 + 2 + 1.5) / 1.75
    made = GeometricMedian(steps=1, smoothing=1.0).aggregate(contributions(0.0, 2.0, 6.0), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([2.0], rel=1e-15)
    assert list(made.statistics.weights.values()) == pytest.approx([2 / 7, 4 / 7, 1 / 7], rel=1e-15)


def test_a_point_in_the_middle_is_found() -> None:
    corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0], [2.0, 2.0]])
    given, schema = vectors(corners, np.full(5, 0.2))
    made = GeometricMedian(steps=20).aggregate(given, ROUND, schema)
    np.testing.assert_allclose(made.direction.weights.values, [2.0, 2.0], rtol=1e-9)


@pytest.mark.parametrize("steps", [1, 8])
def test_against_its_definition(steps: int) -> None:
    matrix, shares = round_of(11)
    given, schema = vectors(matrix, shares)
    made = GeometricMedian(steps).aggregate(given, ROUND, schema)
    wanted = robust.geometric_median(matrix, shares, steps, 1e-6)
    np.testing.assert_allclose(made.direction.weights.values, wanted, rtol=1e-9)


def test_a_huge_update_does_not_move_it() -> None:
    made = GeometricMedian().aggregate(contributions(1.0, 1.0, 1.0, 1e300), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([1.0], rel=1e-15)


def test_the_ranges() -> None:
    with pytest.raises(ConfigError, match=r"geometric_median\.steps must be at least 1"):
        GeometricMedian(steps=0)
    with pytest.raises(ConfigError, match=r"geometric_median\.smoothing must be above 0"):
        GeometricMedian(smoothing=0.0)
