"""Hypotheses about a difference: superiority, non-inferiority, equivalence; tested by paired t and by sign flips.

Each consists of one or two one-sided tests of the mean difference, and the p-value is the larger one. For equivalence
these are the two one-sided tests (TOST) of Schuirmann (1987).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from fedreuse.core.errors import require
from fedreuse.core.randomness import stream
from fedreuse.report.statistics.intervals import Interval, t_interval, varies

__all__ = ["Better", "Hypothesis", "Test", "decision_interval", "sign_flip_p", "smallest_sign_flip_p", "t_p"]

Test = Literal["superiority", "non_inferiority", "equivalence"]
Better = Literal["higher", "lower", "either"]
_Question = tuple[float, Literal["greater", "less", "two-sided"]]


@dataclass(frozen=True)
class Hypothesis:
    """Hypothesis about a mean difference A - B.

    Args:
        test: `superiority` (A is better than B by more than the margin), `non_inferiority` (A is not worse than B by
            the margin), `equivalence` (A and B differ by less than the margin, either way).
        margin: In the unit of the differences, 0.01 for one point of accuracy. At least 0 for superiority, above 0
            for the others.
        better: The sign of A - B that favours A: `higher` for a score, `lower` for bytes. `either` tests for a
            difference in any direction (superiority without a margin); equivalence allows no other value.

    Raises:
        ConfigError: The test cannot have this margin or direction.

    Example:
        >>> Hypothesis("equivalence", margin=0.01).questions
        ((-0.01, 'greater'), (0.01, 'less'))

    """

    test: Test = "superiority"
    margin: float = 0.0
    better: Better = "either"

    def __post_init__(self) -> None:
        """Check the margin and the direction."""
        require(np.isfinite(self.margin) and self.margin >= 0, "margin must be finite and at least 0", self.margin)
        if self.test != "superiority":
            require(
                self.margin > 0,
                f"margin must be above 0 for {self.test}, because no finite number of seeds shows that two means are "
                "equal; name the smallest difference that matters, such as 0.01 for one point of accuracy",
                self.margin,
            )
        if self.test == "non_inferiority":
            require(self.better != "either", "better must be higher or lower for non_inferiority", self.better)
        if self.test == "equivalence":
            require(self.better == "either", "better must be either for equivalence (no direction)", self.better)
        if self.test == "superiority" and self.better == "either":
            require(self.margin == 0, "superiority with a margin needs better: higher or lower", self.margin)

    @property
    def questions(self) -> tuple[_Question, ...]:
        """The values that the mean difference is compared with, each with the side on which the claim lies."""
        if self.test == "equivalence":
            return ((-self.margin, "greater"), (self.margin, "less"))
        if self.better == "either":
            return ((0.0, "two-sided"),)
        sign = 1 if (self.test == "superiority") == (self.better == "higher") else -1
        return ((sign * self.margin, "greater" if self.better == "higher" else "less"),)

    @property
    def num_tails(self) -> int:
        """2 for a two-sided test, else 1."""
        return 2 if self.questions[0][1] == "two-sided" else 1


def t_p(differences: Sequence[float], hypothesis: Hypothesis) -> float | None:
    """Return the p-value of the paired t-test; for equivalence the larger of both one-sided tests.

    Returns:
        None where t is undefined: fewer than two differences, or all of them equal.

    Example:
        >>> round(t_p([0.1, -0.2, 0.3, 0.0, 0.1], Hypothesis("equivalence", margin=0.5)), 4)
        0.0028

    """
    if len(differences) < 2 or not varies(differences):
        return None
    return max(
        float(stats.ttest_1samp(differences, value, alternative=side).pvalue) for value, side in hypothesis.questions
    )


def sign_flip_p(differences: Sequence[float], hypothesis: Hypothesis, seed: int = 0, num_flips: int = 2**16) -> float:
    """Return the p-value of the permutation test that flips the sign of each difference (Fisher, 1935).

    Exact up to 2^n = `num_flips` (sixteen pairs); beyond, from that many random flips. The only assumption is that
    differences are distributed symmetrically around the tested value. One pair gives 1.

    Example:
        >>> sign_flip_p([1.0, 2.0, 3.0, 4.0, 5.0], Hypothesis())  # the smallest possible with five pairs
        0.0625

    """
    data = np.asarray(differences, dtype=np.float64)
    if len(data) < 2:
        return 1.0
    return max(
        float(
            stats.permutation_test(
                (data - value,),
                np.mean,
                permutation_type="samples",
                alternative=side,
                n_resamples=num_flips,
                rng=stream(seed, "sign flips"),
            ).pvalue
        )
        for value, side in hypothesis.questions
    )


def smallest_sign_flip_p(num_pairs: int, hypothesis: Hypothesis) -> float:
    """Return the smallest p-value possible with this many pairs: 1/2^n, twice that for a two-sided test.

    Example:
        >>> smallest_sign_flip_p(5, Hypothesis())
        0.0625

    """
    return float(min(1.0, hypothesis.num_tails / 2.0**num_pairs))


def decision_interval(differences: Sequence[float], hypothesis: Hypothesis, alpha: float) -> Interval | None:
    """Return the t interval that is equivalent to `t_p` at level alpha: the claim holds if it contains the interval.

    Its confidence is 1 - alpha for a two-sided test and 1 - 2 alpha for one-sided ones.
    """
    return t_interval(differences, 1 - alpha * (2 / hypothesis.num_tails))
