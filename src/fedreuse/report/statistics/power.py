"""Power of tests over seeds: the detectable difference, and the number of seeds that a claim needs."""

from __future__ import annotations

from math import ceil, log2, sqrt

from scipy import special, stats

from fedreuse.report.statistics.hypotheses import Hypothesis

__all__ = ["detectable", "seeds_for_sign_flips", "seeds_for_t", "smallest_margin"]

_MOST_SEEDS = 10_000


def detectable(sd: float, num_pairs: int, hypothesis: Hypothesis, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the effect that a paired t-test detects with a given power, in the unit of the differences.

    Args:
        sd: Standard deviation of the paired differences, observed or expected.
        num_pairs: Number of seeds, at least 2.
        hypothesis: The hypothesis to test.
        alpha: Level of the test; with several tests, that of the first step of the correction.
        power: Probability of detecting the effect, in (0, 1).

    Returns:
        For superiority: the size of the true difference. For non-inferiority: how far the true difference may lie on
        the worse side (negative: it must be better by that much). For equivalence: the margin within which two equal
        variants are shown to be equivalent (an upper bound: both one-sided tests are treated as failing separately).

    Example:
        >>> round(detectable(0.01, 5, Hypothesis()), 4)  # 1.68 standard deviations
        0.0168

    """
    is_equivalence = hypothesis.test == "equivalence"
    effect = _effect(num_pairs, hypothesis.num_tails, alpha, 1 - (1 - power) / 2 if is_equivalence else power)
    if hypothesis.test == "superiority":
        return hypothesis.margin + effect * sd
    return effect * sd if is_equivalence else hypothesis.margin - effect * sd


def _effect(num_pairs: int, num_tails: int, alpha: float, power: float) -> float:
    """Return the difference in standard deviations with this power, ignoring the tail on the wrong side.

    `TTestPower.solve_power` of statsmodels is not used: it stops early for a small alpha (ten pairs at 0.0005: power
    0.69 instead of 0.8).
    """
    critical = stats.t.isf(alpha / num_tails, num_pairs - 1)
    return float(special.nctdtrinc(num_pairs - 1, 1 - power, critical)) / sqrt(num_pairs)


def smallest_margin(sd: float, num_pairs: int, alpha: float = 0.05) -> float:
    """Return the smallest margin that one-sided t-tests can show, reached if the observed difference is exactly zero.

    Example:
        >>> round(smallest_margin(0.01, 5), 4)  # 2.132 standard errors
        0.0095

    """
    return float(stats.t.ppf(1 - alpha, num_pairs - 1)) * sd / sqrt(num_pairs)


def seeds_for_t(sd: float, margin: float, alpha: float = 0.05) -> int:
    """Return the smallest number of seeds that can show a margin, for differences with standard deviation `sd`.

    Example:
        >>> seeds_for_t(0.01, 0.01)
        5

    """
    enough = (number for number in range(2, _MOST_SEEDS) if smallest_margin(sd, number, alpha) < margin)
    return next(enough, _MOST_SEEDS)


def seeds_for_sign_flips(hypothesis: Hypothesis, alpha: float = 0.05) -> int:
    """Return the smallest number of seeds with which the sign-flip test can reach alpha.

    Example:
        >>> seeds_for_sign_flips(Hypothesis())
        6

    """
    return ceil(log2(hypothesis.num_tails / alpha))
