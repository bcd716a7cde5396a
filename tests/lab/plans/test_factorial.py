"""Effects of a 2 x 2 design against numbers worked by hand and the analysis of variance of statsmodels."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.anova import AnovaRM

from fedreuse.core.errors import ConfigError
from fedreuse.lab.plans.factorial import factorial_effects


def _cells():
    rng = np.random.default_rng(5)
    return {
        (a, b): {seed: seed + 0.4 * a - 0.2 * b + 0.3 * (a and b) + rng.normal(0, 0.2) for seed in range(6)}
        for a in (False, True)
        for b in (False, True)
    }


def test_effects_worked_by_hand() -> None:
    cells = {(False, False): {1: 1.0, 2: 2.0}, (True, False): {1: 4.0, 2: 5.0},
             (False, True): {1: 3.0, 2: 4.0}, (True, True): {1: 10.0, 2: 13.0}}  # fmt: skip
    effects = factorial_effects(cells)
    # seed 1: ((4 - 1) + (10 - 3)) / 2 = 5, ((3 - 1) + (10 - 4)) / 2 = 4, (10 - 3) - (4 - 1) = 4
    # seed 2: ((5 - 2) + (13 - 4)) / 2 = 6, ((4 - 2) + (13 - 5)) / 2 = 5, (13 - 4) - (5 - 2) = 6
    assert effects["first"].by_seed == {1: 5.0, 2: 6.0}
    assert effects["second"].by_seed == {1: 4.0, 2: 5.0}
    assert effects["interaction"].by_seed == {1: 4.0, 2: 6.0}


def test_p_values_are_those_of_a_repeated_measures_analysis_of_variance() -> None:
    cells = _cells()
    rows = [(s, str(a), str(b), y) for (a, b), by_seed in cells.items() for s, y in by_seed.items()]
    table = AnovaRM(pd.DataFrame(rows, columns=["seed", "a", "b", "y"]), "y", "seed", ["a", "b"]).fit().anova_table
    effects = factorial_effects(cells)
    for name, row in (("first", "a"), ("second", "b"), ("interaction", "a:b")):
        assert effects[name].t_p == pytest.approx(table.loc[row, "Pr > F"], rel=1e-9)


def test_every_cell_needs_every_seed() -> None:
    cells = _cells()
    del cells[True, True][3]
    with pytest.raises(ConfigError, match=r"seeds \[3\]"):
        factorial_effects(cells)
