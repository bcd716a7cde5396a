"""Directions: signs of a seed, and moves in a fixed order."""

from __future__ import annotations

import numpy as np

from fedreuse.core.tensors import Tensors
from fedreuse.methods.directions import along, signs
from fedreuse.testing.quadratic import quadratic_schema


def test_signs_are_those_of_their_seed_step_and_number() -> None:
    drawn = [signs(*at, 1000) for at in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))]
    assert all(set(np.unique(one)) == {-1, 1} for one in drawn)
    assert np.array_equal(drawn[0], signs(0, 0, 0, 1000))
    gram = np.stack(drawn).astype(float) @ np.stack(drawn).T
    assert np.abs(gram - 1000 * np.eye(4)).max() < 150  # four standard deviations of a sum of 1000 signs: 126
    assert signs(0, 0, 0, 5).tolist() == drawn[0][:5].tolist()


def test_a_move_by_hand() -> None:
    schema = quadratic_schema().weights
    start = Tensors(schema, np.arange(12.0))
    moved = along(start, [(0.5, np.ones(12, np.int8)), (-2.0, -np.ones(12, np.int8))])
    assert moved.values.tolist() == (np.arange(12.0) + 2.5).tolist()
    assert start.values.tolist() == np.arange(12.0).tolist()
