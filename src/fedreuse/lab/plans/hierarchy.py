"""Random-effects mean of a contrast over several datasets."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from statsmodels.stats.meta_analysis import combine_effects

from fedreuse.report.statistics.intervals import Interval, varies

__all__ = ["OverDatasets", "over_datasets"]


@dataclass(frozen=True)
class OverDatasets:
    """A random-effects summary.

    `between_sd` is the standard deviation of the true differences between datasets, `heterogeneity` its share (0 to 1)
    of the observed variance (I squared).
    """

    mean: float
    interval: Interval
    between_sd: float
    heterogeneity: float
    num_datasets: int


def over_datasets(differences: Mapping[str, Sequence[float]], confidence: float = 0.95) -> OverDatasets | None:
    """Compute the random-effects mean of paired differences over datasets.

    Two levels: seeds within a dataset, and datasets as a sample of possible datasets. The variance between datasets is
    estimated by Paule and Mandel (1982). The interval uses Student's t with (datasets - 1) degrees of freedom, and so
    is wide for few datasets; it is that of Hartung, Knapp, Sidik and Jonkman, never shorter than the plain one.

    Args:
        differences: The paired differences (one per seed) of each dataset.
        confidence: Confidence of the interval, in (0, 1).

    Returns:
        None for fewer than two datasets, or where the differences of a dataset do not vary (its weight would be
        infinite).

    Example:
        >>> both = over_datasets({"mnist": [0.01, 0.02, 0.03], "digits": [0.03, 0.04, 0.05]})
        >>> round(both.mean, 3), both.num_datasets
        (0.03, 2)

    """
    groups = [np.asarray(values, dtype=np.float64) for values in differences.values()]
    if len(groups) < 2 or any(len(values) < 2 or not varies(values.tolist()) for values in groups):
        return None
    means = np.array([values.mean() for values in groups])
    variances = np.array([values.var(ddof=1) / len(values) for values in groups])
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")  # concerns the intervals of single datasets, unused here
        found = combine_effects(means, variances, method_re="iterated", use_t=True)
        row = found.summary_frame(alpha=1 - confidence).loc["random effect"]
    return OverDatasets(
        mean=float(row["eff"]),
        interval=Interval(float(row["ci_low"]), float(row["ci_upp"])),
        between_sd=float(np.sqrt(found.tau2)),
        heterogeneity=max(0.0, float(found.i2)),
        num_datasets=len(groups),
    )
