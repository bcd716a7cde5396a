"""The benchmark of members: one row per cell, with means over the seeds."""

from __future__ import annotations

from benchmarks.members import cells


def test_a_cell_has_the_mean_of_its_seeds() -> None:
    cell = ("averaging", "median", "backdoor, 20 %")
    assert cells([(cell, (90.0, 0.1, False)), (cell, (0.0, None, True))]) == [
        {"method": "averaging", "bounds": "median", "attack": "backdoor, 20 %", "seeds": 2, "score": 45.0, "ended": 1}
        | {"backdoor": 10.0}
    ]
