"""The benchmark of members: one row per cell, with means over the seeds."""

from __future__ import annotations

import numpy as np

from benchmarks.members import OFF, VARIANTS, cells, varied
from fedreuse.robustness import bounds


def test_a_cell_has_the_mean_of_its_seeds() -> None:
    cell = ("averaging", "median", "backdoor, 20 %")
    assert cells([(cell, (90.0, 0.1, False)), (cell, (0.0, None, True))]) == [
        {"method": "averaging", "bounds": "median", "attack": "backdoor, 20 %", "seeds": 2, "score": 45.0, "ended": 1}
        | {"backdoor": 10.0}
    ]


def constants() -> list[float]:
    return [bounds.LONGEST, bounds.SPREAD, bounds.COUNTED]


def test_other_constants_are_for_a_while() -> None:
    counts, before = np.array([10, 20, 30_000]), constants()
    for name in VARIANTS:
        with varied(name):
            assert sum(value < OFF for value in constants()) == (1 if name.endswith("alone") else 3)
            assert (bounds.most_examples(counts) == 20) == (name in ("examples alone", "earlier replies of all"))
        assert constants() == before
    with varied("median"):
        assert bounds.most_examples(counts) == 20
