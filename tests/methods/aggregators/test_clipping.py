"""Clipping by hand and against its definition: with a bound, and with the median of the norms."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.aggregators.clipping import Clipping, shrinkage
from tests.methods.aggregators.numbers import NUMBER, ROUND, contributions, round_of, vectors
from tests.references import robust


def test_the_median_bound_by_hand() -> None:
    # norms 1, 2, 4, 1024; median 3: (1 + 2 + 3 - 3) / 4
    made = Clipping().aggregate(contributions(1.0, 2.0, 4.0, -1024.0), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [0.75]
    assert made.direction.buffers.values.tolist() == [0.75]
    assert made.verdicts == {2: "clipped", 3: "clipped"}
    assert made.statistics.weights == {0: 0.25, 1: 0.25, 2: 0.25 * 0.75, 3: 0.25 * (3 / 1024)}


def test_a_bound_is_for_the_weights_and_statistics_follow_their_median() -> None:
    # weights: (1 + 2 + 2) / 3 under the bound 2; statistics: the median norm 2 clips 1e30
    made = Clipping(bound=2.0).aggregate(contributions(1.0, 2.0, 1e30), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([5 / 3], rel=1e-15)
    assert made.direction.buffers.values.tolist() == pytest.approx([5 / 3], rel=1e-15)
    assert made.verdicts == {2: "clipped"}


def test_what_is_reused_is_seen_with_its_decay() -> None:
    # 1, 1, 1/2 * 8 = 4 clipped to the median 1
    made = Clipping().aggregate(contributions(1.0, 1.0, 8.0, decays={2: 0.5}), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([1.0], rel=1e-15)
    assert made.verdicts == {2: "clipped"}


@pytest.mark.parametrize(("bound", "factor"), [(None, 1.0), (None, 2.0), (0.5, 1.0)])
def test_against_its_definition(bound: float | None, factor: float) -> None:
    matrix, shares = round_of(7)
    given, schema = vectors(matrix, shares)
    made = Clipping(bound, factor).aggregate(given, ROUND, schema)
    wanted = robust.clipping(matrix, shares, bound, factor)
    np.testing.assert_allclose(made.direction.weights.values, wanted, rtol=1e-12)


def test_a_norm_beyond_all_numbers_counts_for_nothing() -> None:
    made = Clipping().aggregate(contributions(1.0, 1.0, 1e300), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([2 / 3], rel=1e-15)
    assert made.statistics.weights.keys() == {0, 1}
    assert shrinkage(np.array([0.0, np.inf]), 0.0).tolist() == [1.0, 0.0]


def test_the_ranges() -> None:
    with pytest.raises(ConfigError, match=r"clipping\.bound must be above 0"):
        Clipping(bound=0.0)
    with pytest.raises(ConfigError, match=r"clipping\.factor must be above 0"):
        Clipping(factor=-1.0)
