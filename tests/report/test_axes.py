"""What figures share: a scale around what matters, and names that do not overlap."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.report.axes import COLOURS, MARKERS, _apart, score_range


def test_the_climb_and_who_never_climbs_do_not_take_the_height() -> None:
    climb = np.array([10.0, 60.0, 95.0, 96.0, 97.0, 97.5, 97.8, 98.0])
    bottom, top = score_range([climb, climb - 0.5, climb - 1, np.full(8, 10.0)])
    assert 90 < bottom < 94
    assert 98 < top < 99


def test_two_curves_far_apart_are_both_shown() -> None:
    bottom, _ = score_range([np.full(4, 97.0), np.full(4, 10.0)])
    assert bottom < 10


@pytest.mark.parametrize("curves", [[], [np.zeros(3)], [np.array([0.5])]])
def test_a_scale_has_a_height(curves: list[np.ndarray]) -> None:
    bottom, top = score_range(curves)
    assert bottom < top


def test_names_stand_apart_in_their_order_and_near_their_lines() -> None:
    moved = _apart([0.1, 0.5, 0.51, 0.52, 0.9], 0.05)
    assert np.all(np.diff(moved) >= 0.05 - 1e-12)
    np.testing.assert_allclose(moved, [0.1, 0.46, 0.51, 0.56, 0.9])


def test_every_line_of_a_panel_has_its_own_look() -> None:
    assert len(set(COLOURS)) == len(set(MARKERS)) == len(COLOURS) == len(MARKERS)
