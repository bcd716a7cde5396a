"""Savings as numbers: by hand, with lost clients, and where nothing could be saved."""

from __future__ import annotations

import numpy as np

from fedreuse.accounting.saving import Saving
from fedreuse.accounting.traffic import Traffic


def drawn(up: list[int], dense_up: list[int], dense_down: list[int]) -> Traffic:
    return Traffic("b", np.zeros(2, int), np.array(up), np.array(dense_down), np.array(dense_up), 8, 2)


def test_by_hand() -> None:
    saving = Saving.of(drawn([100, 200], [1000, 500], [0, 0]))
    assert (saving.up, saving.down, saving.both) == (1 - 300 / 1500, None, 1 - 300 / 1500)
    assert saving.mean_round_up == (0.9 + 0.6) / 2
    assert saving.lost_share == 0.25
    assert saving.to_plain()["up_saving"] == saving.up
    assert saving.to_plain()["lost_share"] == 0.25


def test_nothing_came_so_nothing_is_saved() -> None:
    saving = Saving.of(drawn([0, 0], [0, 0], [0, 0]))
    assert (saving.up, saving.both, saving.mean_round_both) == (None, None, None)


def test_against_another_reference() -> None:
    saving = Saving.of(drawn([100, 200], [1000, 500], [1000, 1000]))
    assert saving.against(3000, 3000, "up") == 0.9
    assert saving.against(0, 0, "both") is None


def test_a_counted_downlink_by_hand() -> None:
    # rounds of 1000 and 500 dense bytes down, of which 250 and 400 were sent: savings of 0.75 and 0.2
    down, dense_down = np.array([250, 400]), np.array([1000, 500])
    saving = Saving.of(Traffic("b", down, np.array([100, 200]), dense_down, np.array([1000, 500])))
    assert (saving.down, saving.mean_round_down) == (1 - 650 / 1500, (0.75 + 0.2) / 2)
    uncounted = Saving.of(Traffic("b", down, np.array([100, 200]), np.zeros(2, int), np.array([1000, 500])))
    assert (uncounted.down, uncounted.mean_round_down) == (None, None)
