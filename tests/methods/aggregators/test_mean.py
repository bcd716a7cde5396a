"""The weighted mean by hand: fresh and reused, by ratio and unbiased."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.population import Population
from fedreuse.methods.aggregators.aggregator import Contribution
from fedreuse.methods.aggregators.mean import Mean, chosen_aggregator
from tests.methods.aggregators.numbers import NUMBER, update

FOUR = Cohort(1, (0, 2), 1, population=Population(np.array([10, 20, 30, 40])))


def test_by_ratio() -> None:
    # 1/4 * 8 + 3/4 * 1/2 * 4 = 3.5; statistics of client 0 alone
    given = {0: Contribution(update(8.0), 0.25, 1.0, 1.0), 2: Contribution(update(4.0), 0.75, 0.5, None, 2)}
    made = Mean().aggregate(given, FOUR, NUMBER)
    assert made.direction.weights.values.tolist() == [3.5]
    assert made.direction.buffers.values.tolist() == [8.0]
    assert made.statistics.weights == {0: 0.25, 2: 0.375}
    assert made.verdicts == {}


def test_unbiased() -> None:
    # N / m = 2: 2 * 10/100 * 8 + 2 * 30/100 * 1/2 * 4 = 2.8
    given = {0: Contribution(update(8.0), 0.25, 1.0, 1.0), 2: Contribution(update(4.0), 0.75, 0.5, None, 2)}
    assert Mean("ht").aggregate(given, FOUR, NUMBER).direction.weights.values.tolist() == pytest.approx([2.8])


def test_an_aggregator_beside_a_weighting_is_refused() -> None:
    assert chosen_aggregator(None, "ht") == Mean("ht")
    assert chosen_aggregator(Mean("ht")) == Mean("ht")
    with pytest.raises(ConfigError, match=r"method\.weighting must stay ratio beside method\.aggregate"):
        chosen_aggregator(Mean(), "ht")
