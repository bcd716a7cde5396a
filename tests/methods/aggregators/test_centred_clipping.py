"""Centred clipping by hand and against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.aggregators.centred_clipping import CentredClipping
from tests.methods.aggregators.numbers import NUMBER, ROUND, contributions, round_of, vectors
from tests.references import robust


def test_one_step_by_hand() -> None:
    # around the median 2: -1, 0, and 1e6 clipped to 1: 2 + (-1 + 0 + 1) / 3
    made = CentredClipping(bound=1.0, steps=1).aggregate(contributions(1.0, 2.0, 1e6), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([2.0], rel=1e-9)
    # without a bound the median distance, 1, is the same; statistics take it always
    assert made.direction.buffers.values.tolist() == pytest.approx([2.0], rel=1e-9)


@pytest.mark.parametrize(("bound", "steps"), [(None, 1), (None, 3), (0.7, 3)])
def test_against_its_definition(bound: float | None, steps: int) -> None:
    matrix, shares = round_of(13)
    given, schema = vectors(matrix, shares)
    made = CentredClipping(bound, steps).aggregate(given, ROUND, schema)
    wanted = robust.centred_clipping(matrix, shares, steps, bound)
    np.testing.assert_allclose(made.direction.weights.values, wanted, rtol=1e-9)


def test_the_ranges() -> None:
    with pytest.raises(ConfigError, match=r"centred_clipping\.bound must be above 0"):
        CentredClipping(bound=-1.0)
    with pytest.raises(ConfigError, match=r"centred_clipping\.steps must be at least 1"):
        CentredClipping(steps=0)
