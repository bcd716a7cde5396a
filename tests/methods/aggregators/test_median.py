"""The coordinate-wise median by hand and against its definition; refused where dropped coordinates would decide."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.compression.links.packed import PackedLink
from fedreuse.compression.links.plain import Plain
from fedreuse.config.recipe import Recipe
from fedreuse.core.errors import ConfigError
from fedreuse.methods.aggregators.median import Median, median_of
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.movement import Movement
from tests.methods.aggregators.numbers import NUMBER, ROUND, contributions, round_of, vectors
from tests.references import robust


def test_by_hand() -> None:
    # weights: 1, 2, 1/2 * 8 = 4, 1e30: median 3; statistics of those who trained: 1, 2, 1e30
    made = Median().aggregate(contributions(1.0, 2.0, 8.0, 1e30, decays={2: 0.5}), ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == [3.0]
    assert made.direction.buffers.values.tolist() == [2.0]
    assert made.statistics.weights == {0: 0.25, 1: 0.25, 2: 0.125, 3: 0.25}
    assert made.verdicts == {}


@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_against_its_definition(size: int) -> None:
    matrix, shares = round_of(3, size)
    given, schema = vectors(matrix, shares)
    made = Median().aggregate(given, ROUND, schema)
    np.testing.assert_array_equal(made.direction.weights.values, robust.median(matrix))


def test_more_coordinates_than_one_block() -> None:
    rows = np.random.default_rng(0).normal(size=(3, (1 << 16) + 3)).astype(np.float32)
    np.testing.assert_array_equal(median_of(list(rows)), np.median(rows.astype(np.float64), axis=0))


def test_one_coordinate_of_1e38_does_not_matter() -> None:
    rows = np.float32([[1, 2], [3, 4], [3e38, -3e38], [3e38, 5]])
    assert median_of(list(rows)).tolist() == [(3 + float(np.float32(3e38))) / 2, 3.0]


@pytest.mark.parametrize("link", [Plain(TopK(0.2)), PackedLink(Plain(TopK(0.2)))])
def test_codecs_that_drop_coordinates_are_refused(link: Plain | PackedLink) -> None:
    with pytest.raises(ConfigError, match=r"method\.aggregate: median with uplink\.update: .* drops coordinates"):
        Recipe(Averaging(aggregate=Median()), {"update": link})
    with pytest.raises(ConfigError, match=r"method\.aggregate: median"):
        Recipe(Movement(Averaging(aggregate=Median())), {"update": link})


def test_dense_estimates_and_other_rules_are_taken() -> None:
    assert Recipe(Averaging(aggregate=Median()), {"update": Ef21(TopK(0.2))}).build()
    assert Recipe(Averaging(aggregate=Median())).build()
    assert Recipe(Averaging(), {"update": Plain(TopK(0.2))}).build()
