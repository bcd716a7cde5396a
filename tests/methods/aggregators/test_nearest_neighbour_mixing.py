"""Nearest-neighbour mixing by hand and against its definition, around other rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.aggregators.krum import Krum
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.aggregators.median import Median
from fedreuse.methods.aggregators.nearest_neighbour_mixing import NearestNeighbourMixing
from fedreuse.methods.aggregators.trimmed_mean import TrimmedMean
from tests.methods.aggregators.numbers import NUMBER, ROUND, contributions, round_of, update, vectors
from tests.references import robust

FIVE = contributions(0.0, 1.0, 3.0, 4.0, 100.0)
"""f = 1, so 4 neighbours: 0, 1, 3, 4 become their mean 2, and 100 becomes the mean 27 of 1, 3, 4, 100."""


def test_the_mean_of_the_mixed_by_hand() -> None:
    made = NearestNeighbourMixing(0.2, Mean()).aggregate(FIVE, ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([(4 * 2 + 27) / 5], rel=1e-15)
    assert list(made.statistics.weights.values()) == pytest.approx([0.2, 0.25, 0.25, 0.25, 0.05], rel=1e-15)


def test_the_median_of_the_mixed_by_hand() -> None:
    made = NearestNeighbourMixing(0.2, Median()).aggregate(FIVE, ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [2.0]
    assert made.direction.buffers.values.tolist() == [2.0]
    assert made.verdicts == {}


def test_whom_no_kept_mean_contains_is_left_out() -> None:
    made = NearestNeighbourMixing(0.2, Krum(0.2)).aggregate(FIVE, ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [2.0]
    assert made.statistics.weights == dict.fromkeys(range(4), 0.25)
    assert made.verdicts == {4: "left out by krum"}


def test_what_is_reused_is_mixed_with_its_decay_and_without_its_statistics() -> None:
    # weights 1, 1, 1 and 8 / 2 = 4, statistics 1, 1, 1; f = 1
    given = contributions(1.0, 1.0, 1.0, 8.0, decays={3: 0.5})
    made = NearestNeighbourMixing(0.25, Mean()).aggregate(given, ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([(3 * 1 + 2) / 4], rel=1e-15)
    assert made.direction.buffers.values.tolist() == pytest.approx([1.0], rel=1e-15)
    assert made.statistics.weights[3] == pytest.approx(0.5 / 12, rel=1e-15)


@pytest.mark.parametrize("size", [5, 9, 13])
def test_against_its_definition(size: int) -> None:
    matrix, shares = round_of(29, size=size)
    given, schema = vectors(matrix, shares)
    made = NearestNeighbourMixing(0.2, TrimmedMean(0.2)).aggregate(given, ROUND, schema)
    wanted = robust.trimmed_mean(robust.nearest_neighbour_mixing(matrix, size // 5), size // 5)
    np.testing.assert_allclose(made.direction.weights.values, wanted, rtol=1e-12)


def test_forged_statistics_have_neighbours_of_their_own() -> None:
    given = contributions(1.0, 1.0, 1.0, 1.0, 1.0)
    given[0] = replace(given[0], update=replace(given[0].update, buffers=update(1e6).buffers))
    made = NearestNeighbourMixing(0.2, Median()).aggregate(given, ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [1.0]
    assert made.direction.buffers.values.tolist() == [1.0]


def test_a_huge_update_is_far() -> None:
    made = NearestNeighbourMixing().aggregate(contributions(1.0, 1.0, 1.0, 1.0, 1e300), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([1.0], rel=1e-15)


def test_one_contribution_is_taken() -> None:
    made = NearestNeighbourMixing().aggregate(contributions(5.0), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [5.0]


def test_the_range() -> None:
    with pytest.raises(ConfigError, match=r"nearest_neighbour_mixing\.bad must be in \[0, 0\.5\)"):
        NearestNeighbourMixing(bad=0.5)
