"""The mean over datasets against a meta-analysis in print."""

import numpy as np
import pytest
from scipy import stats

from fedreuse.lab.plans.hierarchy import over_datasets

BCG_EFFECTS = [-0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209, 0.0120, -0.4694, -1.3713, -0.3394,
               0.4459, -0.0173]  # fmt: skip
BCG_VARIANCES = [0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230, 0.0040, 0.0564, 0.0730, 0.0124, 0.5325,
                 0.0714]  # fmt: skip
"""Colditz et al. (1994), log risk ratios of the BCG vaccine; `dat.bcg` of R's metafor."""


def _with(mean, variance_of_mean, size=5):
    """So many observations with exactly this mean and this squared standard error."""
    shape = np.linspace(-1, 1, size)
    return (mean + shape * np.sqrt(variance_of_mean * size) / shape.std(ddof=1)).tolist()


def test_the_vaccine_trials_give_the_published_summary() -> None:
    trials = {str(n): _with(*pair) for n, pair in enumerate(zip(BCG_EFFECTS, BCG_VARIANCES, strict=True))}
    found = over_datasets(trials)
    # Viechtbauer (2010), REML: tau^2 = 0.3132, estimate -0.7145; Paule and Mandel's estimator differs a little
    assert found is not None
    assert found.num_datasets == 13
    assert found.between_sd**2 == pytest.approx(0.3132, abs=6e-3)
    assert found.mean == pytest.approx(-0.7145, abs=1e-3)
    # what defines it: the weighted sum of squares about the mean is the number of trials - 1
    weights = 1 / (np.array(BCG_VARIANCES) + found.between_sd**2)
    assert weights @ (np.array(BCG_EFFECTS) - found.mean) ** 2 == pytest.approx(12, abs=1e-4)
    half = stats.t.ppf(0.975, 12) / np.sqrt(weights.sum())
    assert found.interval == pytest.approx((found.mean - half, found.mean + half))


def test_datasets_that_agree_have_no_spread_between_them() -> None:
    found = over_datasets({"a": [0.9, 1.0, 1.1], "b": [0.8, 1.0, 1.2]})
    assert found is not None
    assert found.between_sd == 0
    assert found.heterogeneity == 0
    assert found.mean == pytest.approx(1.0)


def test_datasets_that_disagree_widen_the_interval() -> None:
    near = over_datasets({"a": [0.9, 1.0, 1.1], "b": [1.0, 1.1, 1.2], "c": [0.8, 0.9, 1.0]})
    far = over_datasets({"a": [0.9, 1.0, 1.1], "b": [2.0, 2.1, 2.2], "c": [-0.2, -0.1, 0.0]})
    assert near is not None
    assert far is not None
    assert far.interval.high - far.interval.low > 5 * (near.interval.high - near.interval.low)
    assert far.heterogeneity > 0.9


@pytest.mark.parametrize("groups", [{"a": [1.0, 2.0]}, {"a": [1.0, 2.0], "b": [1.0, 1.0]}, {"a": [1.0, 2.0], "b": [1]}])
def test_nothing_is_said_where_a_weight_would_be_infinite(groups) -> None:
    assert over_datasets(groups) is None
