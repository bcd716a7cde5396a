"""The trimmed mean by hand and against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.aggregators.trimmed_mean import TrimmedMean
from tests.methods.aggregators.numbers import NUMBER, ROUND, contributions, round_of, vectors
from tests.references import robust


def test_by_hand() -> None:
    # 20 % of five is one at each end: (1 + 2 + 6) / 3
    made = TrimmedMean(0.2).aggregate(contributions(-1e30, 1.0, 2.0, 6.0, 1e30), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [3.0]
    assert made.direction.buffers.values.tolist() == [3.0]


def test_fewer_than_five_are_averaged() -> None:
    made = TrimmedMean(0.2).aggregate(contributions(1.0, 2.0, 6.0), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [3.0]


@pytest.mark.parametrize(("bad", "cut"), [(0.0, 0), (0.15, 1), (0.3, 2), (0.49, 3)])
def test_against_its_definition(bad: float, cut: int) -> None:
    matrix, shares = round_of(5)
    given, schema = vectors(matrix, shares)
    made = TrimmedMean(bad).aggregate(given, ROUND, schema)
    np.testing.assert_allclose(made.direction.weights.values, robust.trimmed_mean(matrix, cut), rtol=1e-12)


def test_the_range() -> None:
    with pytest.raises(ConfigError, match=r"trimmed_mean\.bad must be in \[0, 0\.5\)"):
        TrimmedMean(0.5)
